//go:build edge

package edge_test

func beChild() int { return 1 }
