// What holds the precompiled headers of the tests; there is nothing of its own in it.
