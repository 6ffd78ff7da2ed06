// Package cases runs the failure cases of cases.yaml against the fixture server: every
// plain request over HTTP and as the event of each AWS front door, every event as it
// stands. It has tests only.
//
// The cases are data, what must come of them is prose; the tables of assertions say it in
// Go, line by line, and quote the line. A case, a request or an expected line that no
// table names fails the test, and so does a table that names what is not there.
package cases
