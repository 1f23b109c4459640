// What page_reader.cpp does by calls, in Go, whose programs do not use the C library.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
)

func main() {
	file, err := os.Open(os.Args[2])
	if err != nil {
		os.Exit(1)
	}
	var numbers [3]int
	for i := range numbers {
		numbers[i], _ = strconv.Atoi(os.Args[3+i])
	}
	fmt.Println("open")
	bufio.NewReader(os.Stdin).ReadString('\n')
	into := make([]byte, numbers[2])
	sum := 0
	for i := 0; i < numbers[0]; i++ {
		if _, err := file.ReadAt(into, int64(i*numbers[1])); err != nil {
			os.Exit(1)
		}
		for _, one := range into {
			sum += int(one)
		}
	}
	fmt.Println(sum)
}
