// Command gosdk50 serves fifty tools with the official Go SDK on plain net/http.
package main

import (
	"log"
	"net/http"
	"os"

	"github.com/thaw-mcp/thaw/e2e/bench/gosdkserver"
)

func main() {
	http.Handle("/mcp", gosdkserver.Fifty())
	log.Fatal(http.ListenAndServe(os.Getenv("BENCH_ADDR"), nil))
}
