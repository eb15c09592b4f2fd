// Package command is the provider of an edge by a program: a router's client, a BGP speaker, a cloud's API. It promises
// that the program is given the same as every other provider, one call after the other, and that what it writes to
// standard error is told where it fails.
//
// The program is run with its own arguments and one word behind them (command.go):
//
//	set      the whole wanted state as JSON on standard input; what is not in it is to be taken away
//	renew    {"until": N} on standard input: the time until which the state may be answered for has moved. Exit
//	         status 3: it had passed already, and the whole state is wanted again
//	enabled  writes true or false: something of it is in place
//	remove   takes away all that it has put in place
//
// Times are nanoseconds of the host's clock since its start (CLOCK_BOOTTIME).
package command
