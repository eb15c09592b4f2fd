package ipam

import (
	"slices"
	"strings"
	"testing"
)

// TestForms: the forms of a replica's names and owner lead to one another. Any other text leads only to itself.
func TestForms(t *testing.T) {
	for text, want := range map[string]string{
		"shop-web-1":              "shop-web-1 shop/web/1 shop_web_1",
		"shop_web_1":              "shop_web_1 shop/web/1 shop-web-1",
		"shop/web/1":              "shop/web/1 shop-web-1 shop_web_1",
		"0123456789ab_shop-web-1": "0123456789ab_shop-web-1 shop-web-1 shop/web/1 shop_web_1",
		"a-b-web-2":               "a-b-web-2 a/b-web/2 a_b-web_2 a-b/web/2 a-b_web_2",
		"web":                     "web",
		"shop/web":                "shop/web",
		"shop-web-0":              "shop-web-0",
		"02-42-0A-00-00-02":       "02:42:0a:00:00:02 02-42-0A-00-00-02",
	} {
		forms := Forms(text)
		if got := strings.Join(forms, " "); got != want {
			t.Errorf("%s: %q and not %q", text, got, want)
		}
		for _, form := range forms {
			if !IsForm(forms, form) || strings.Count(form, "/") == 2 && !slices.Contains(Forms(form), text) &&
				!strings.Contains(text, "0123456789ab") {
				t.Errorf("%s is a form of %s, and not the other way", form, text)
			}
		}
	}
}
