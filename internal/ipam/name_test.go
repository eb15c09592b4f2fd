package ipam

import (
	"errors"
	"strings"
	"testing"

	"berth/internal/alloc"

	"pgregory.net/rapid"
)

// What reads as an address or a range names nothing in Berth. Docker's names can be numbers.
func TestNamesAreNoRanges(t *testing.T) {
	const neither, dockers, both = 0, 1, 2
	for name, is := range map[string]int{
		"192.0.2.9-192.0.2.1": neither, "192.0.2.1-192.0.2.9": neither, "192.0.2.300": neither, "192.0.2.01": neither,
		"1.2.3.4-5.6.7.800": neither,
		"10.240.43.100-150": dockers, "100-150": dockers, "10.240.43.100-10.243.22": dockers, "192.0.2": dockers,
		"10.0.0.1..10.0.0.9": dockers, "10.0.0.1_9": dockers, "10.24O.43.1-9": dockers, "1O.240.43.1-9": dockers,
		"100-15O": dockers, "1.2.3.4-5-6": dockers, "1.2.3.4.5": dockers, "192.0.2.1-web": dockers, "10.web": dockers,
		"2024": dockers, "1": dockers, "1_2": dockers,
		"web-192.0.2.1": both, "v1.2.3.4": both, "2024_default": both, "3com": both, "o.1": both, "web-2": both, "no": both,
	} {
		if err := CheckName("network", name); (err == nil) != (is >= dockers) {
			t.Errorf("Docker's name %q: %v", name, err)
		}
		err := CheckNewName("pool", name)
		if (err == nil) != (is == both) {
			t.Errorf("the new name %q: %v", name, err)
		}
		if err != nil && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), alloc.RangeForms)) {
			t.Errorf("%q is refused without the form of a range: %v", name, err)
		}
	}
}

// However a range is mistyped after its first digit, it is a range or it is refused, but never a name.
func TestMistypedRangesAreNoNames(t *testing.T) {
	address := rapid.StringMatching(`(1[0-9]?[0-9]?|2[0-4]?[0-9]?)(\.(1?[0-9]|2[0-4]?[0-9])){3}`)
	rapid.Check(t, func(t *rapid.T) {
		text := address.Draw(t, "from")
		if rapid.Bool().Draw(t, "two ends") {
			text += "-" + rapid.OneOf(address, rapid.StringMatching(`[0-9]{1,3}`)).Draw(t, "to")
		}
		for range rapid.IntRange(0, 4).Draw(t, "slips") {
			i := rapid.IntRange(1, len(text)).Draw(t, "at")
			slip := rapid.SampledFrom([]string{"", ".", "-", "_", "O", "o", "l", "I", "0", "7"}).Draw(t, "slip")
			text = text[:i] + slip + text[min(i+rapid.IntRange(0, 1).Draw(t, "replaced"), len(text)):]
		}
		text = text[:rapid.IntRange(1, len(text)).Draw(t, "cut")]
		_, err := alloc.ParseRange(text)
		if CheckNewName("pool", text) == nil {
			t.Fatalf("%q is a name (a range: %v)", text, err == nil)
		}
	})
}

// A name is a name and nothing else, and Docker takes every name of Berth's.
func TestNamesAreNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[A-Za-z0-9._-]{1,20}`).Draw(t, "name")
		if CheckNewName("pool", name) != nil {
			return
		}
		if _, err := alloc.ParseRange(name); err == nil || CheckName("pool", name) != nil {
			t.Fatalf("%q is a name, and a range or no name of Docker's", name)
		}
	})
}

// One list of words says on and off.
func TestParseBool(t *testing.T) {
	for text, want := range map[string]bool{"on": true, "ON": true, "true": true, "Yes": true, "1": true, "off": false,
		"False": false, "no": false, "0": false} {
		if got, err := ParseBool(text); err != nil || got != want {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "t", "perhaps", "01", " on", "10.0.0.1"} {
		if got, err := ParseBool(text); err == nil || !strings.Contains(err.Error(), "is neither on nor off") {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
}
