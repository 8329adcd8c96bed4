// Reads cases from standard input, a line each, and says of each whether the guide's code believes it.
package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"strings"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		headers := http.Header{}
		headers.Set("webhook-id", fields[1])
		headers.Set("webhook-timestamp", fields[2])
		headers.Set("webhook-signature", fields[3])
		body, err := hex.DecodeString(fields[4])
		if err != nil {
			panic(err)
		}
		fmt.Println(isGenuine(fields[0], headers, body))
	}
}
