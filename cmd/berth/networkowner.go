package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

// ownerFlags are the flags of networks that say who chooses addresses, and what the names of endpoints mean.
type ownerFlags struct {
	static, rules []string
}

func (o *ownerFlags) flags(cmd *cobra.Command, static string) {
	f := cmd.Flags()
	f.StringArrayVar(&o.static, "static", nil, static)
	f.StringArrayVar(&o.rules, "owner-rule", nil,
		"what names mean that match: `PATTERN=pool:NAME`, PATTERN=owner:PATH or PATTERN=pool:NAME,owner:PATH (repeatable)")
}

const ownerRuleHelp = `
An --owner-rule is for endpoints whose names match PATTERN, in which * stands for any characters. With pool: their
automatic addresses come from the pools of that name; with owner: they are that owner, in which each * stands for what
the * of that place in PATTERN matched. The first rule that matches counts.`

// networkTypes are the words of --type.
var networkTypes = []string{"manual", string(ipam.Dynamic), string(ipam.VIP)}

func checkType(text string) error {
	if slices.Contains(networkTypes, text) {
		return nil
	}
	return fmt.Errorf("--type is %q and must be manual, dynamic or vip", text)
}

// parseStatic reads the ranges of --static; "none" alone is that there are none.
func parseStatic(texts []string) ([]ipam.Range, error) {
	bands := []ipam.Range{} // JSON tells none from nothing said
	if len(texts) == 1 && texts[0] == "none" {
		return bands, nil
	}
	for _, text := range texts {
		if text == "none" {
			return nil, errors.New("--static none takes all bands away, and goes with no other --static")
		}
		band, err := parseRange(text)
		if err != nil {
			return nil, fmt.Errorf("--static: %w", err)
		}
		bands = append(bands, band)
	}
	return bands, nil
}

// parseOwnerRules reads PATTERN=pool:NAME,owner:PATH of each --owner-rule.
func parseOwnerRules(texts []string) ([]ipam.OwnerRule, error) {
	var rules []ipam.OwnerRule
	for _, text := range texts {
		rule, err := parseOwnerRule(text)
		if err != nil {
			return nil, fmt.Errorf("--owner-rule %q: %w", text, err)
		}
		if slices.ContainsFunc(rules, func(r ipam.OwnerRule) bool { return r.Pattern == rule.Pattern }) {
			return nil, fmt.Errorf("--owner-rule %s is given twice; write PATTERN=pool:NAME,owner:PATH for both", rule.Pattern)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

func parseOwnerRule(text string) (rule ipam.OwnerRule, err error) {
	pattern, meaning, ok := strings.Cut(text, "=")
	if !ok || pattern == "" {
		return rule, errors.New("write PATTERN=pool:NAME or PATTERN=owner:PATH, for example 'web-*=pool:web'")
	}
	rule.Pattern = pattern
	for part := range strings.SplitSeq(meaning, ",") {
		key, value, _ := strings.Cut(part, ":")
		var to *string
		switch key {
		case "pool":
			to = &rule.Pool
		case "owner":
			to = &rule.Owner
		default:
			return rule, fmt.Errorf("%q is neither pool:NAME nor owner:PATH", part)
		}
		switch {
		case value == "":
			return rule, fmt.Errorf("%s: is empty; to take the rule away, give --owner-rule-rm %s to berth network modify", key, pattern)
		case *to != "":
			return rule, fmt.Errorf("%s: is given twice", key)
		}
		*to = value
	}
	return rule, nil
}

// modify says which bands and rules are set, and which rules removed.
func (o *ownerFlags) modify(cmd *cobra.Command, m *ipam.ModifyNetwork, gone []string) error {
	if cmd.Flags().Changed("static") {
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
		if slices.ContainsFunc(rules, func(r ipam.OwnerRule) bool { return r.Pattern == pattern }) {
			return fmt.Errorf("the owner rule %s is set and removed; do one of them", pattern)
		}
		rules = append(rules, ipam.OwnerRule{Pattern: pattern})
	}
	m.OwnerRules = rules
	return nil
}

// ruleText is a rule as --owner-rule writes it.
func ruleText(r ipam.OwnerRule) string {
	var parts []string
	if r.Pool != "" {
		parts = append(parts, "pool:"+r.Pool)
	}
	if r.Owner != "" {
		parts = append(parts, "owner:"+r.Owner)
	}
	return r.Pattern + "=" + strings.Join(parts, ",")
}
