// Command floor serves one tool with net/http alone.
package main

import (
	"log"
	"net/http"
	"os"

	"github.com/thaw-mcp/thaw/e2e/bench/floor"
)

func main() {
	http.HandleFunc("/mcp", floor.Handler)
	log.Fatal(http.ListenAndServe(os.Getenv("BENCH_ADDR"), nil))
}
