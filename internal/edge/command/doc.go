// Package command is the edge provider that runs a program: a router's client, a BGP speaker, a cloud's API. The
// program gets the same state as every other provider, one call at a time. If it fails, the error holds its standard
// error.
//
// The program gets its own arguments and one more word (command.go):
//
//	set      the whole wanted state as JSON on standard input; the program removes everything else
//	renew    {"until": N} on standard input: the state is now valid until N. Exit status 3: it had already expired,
//	         and the program needs the whole state again
//	enabled  prints true or false: whether any of the state is in place
//	remove   removes everything that the program has put in place
//
// Times are nanoseconds of the host's clock since its start (CLOCK_BOOTTIME).
package command
