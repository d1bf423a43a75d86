//go:build !race

package recordfile

const raceEnabled = false
