package network

import (
	"errors"
	"fmt"
	"slices"

	"berth/internal/cli"
	"berth/internal/ipam"
)

// ownerFlags are the flags of networks for static bands and owner rules.
type ownerFlags struct {
	static, rules []string
}

func (o *ownerFlags) rows(static string) cli.Flags {
	return cli.Flags{
		cli.Flag(&o.static, "static", static),
		cli.Flag(&o.rules, "owner-rule", "a rule for names that match PATTERN: `PATTERN=pool:NAME`, "+
			"PATTERN=owner:PATH or PATTERN=pool:NAME,owner:PATH (repeatable)"),
	}
}

const ownerRuleHelp = `
An --owner-rule applies to endpoints whose names match PATTERN; * matches any characters. With pool:NAME,
their automatic addresses come from the pools of that name. With owner:PATH, they count as that owner; a * in
PATH becomes what the corresponding * of PATTERN matched. The first matching rule applies.`

// networkTypes are the values of --type.
var networkTypes = []string{ipam.Manual.String(), ipam.Dynamic.String(), ipam.VIP.String()}

// parseStatic parses the ranges of --static. A single "none" gives an empty list.
func parseStatic(texts []string) ([]ipam.Range, error) {
	bands := []ipam.Range{} // in JSON, an empty list differs from a missing one
	if len(texts) == 1 && texts[0] == "none" {
		return bands, nil
	}
	for _, text := range texts {
		if text == "none" {
			return nil, errors.New("--static none removes all bands; give no other --static with it")
		}
		band, err := parseRange(text)
		if err != nil {
			return nil, fmt.Errorf("--static: %w", err)
		}
		bands = append(bands, band)
	}
	return bands, nil
}

// parseOwnerRules parses PATTERN=pool:NAME,owner:PATH of each --owner-rule.
func parseOwnerRules(texts []string) ([]ipam.OwnerRule, error) {
	var rules []ipam.OwnerRule
	for _, text := range texts {
		rule, err := ipam.ParseOwnerRule(text)
		if err != nil {
			return nil, fmt.Errorf("--owner-rule: %w", err)
		}
		if hasRule(rules, rule.Pattern) {
			return nil, fmt.Errorf("--owner-rule %s is given twice; write PATTERN=pool:NAME,owner:PATH for both",
				rule.Pattern)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

func hasRule(rules []ipam.OwnerRule, pattern string) bool {
	return slices.ContainsFunc(rules, func(r ipam.OwnerRule) bool { return r.Pattern == pattern })
}

// modify adds the bands and rules to set, and the rules to remove, to the edit.
func (o *ownerFlags) modify(m *ipam.ModifyNetwork, gone []string) error {
	if len(o.static) > 0 {
		bands, err := parseStatic(o.static)
		if err != nil {
			return err
		}
		m.Static = &bands
	}
	rules, err := parseOwnerRules(o.rules)
	if err != nil {
		return err
	}
	for _, pattern := range gone {
		if hasRule(rules, pattern) {
			return fmt.Errorf("the owner rule %s is both set and removed; do only one of these", pattern)
		}
		rules = append(rules, ipam.OwnerRule{Pattern: pattern})
	}
	m.OwnerRules = rules
	return nil
}
