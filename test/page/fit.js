// Whether all text of a view can be read: none is printed over another, and none is cut off. docs/dev/page-checks.md has
// the names of the checks. They hold at each width, so they stand apart from those in checks.js.
(() => {
  const wrong = [];
  const called = (e) => (e.outerHTML || '').replace(/\s+/g, ' ').slice(0, 160);
  const say = (check, e, text) => wrong.push(check + ': ' + text + ' — ' + called(e));
  const shown = (e) => e.getClientRects().length > 0 && e.checkVisibility({visibilityProperty: true});
  const unseen = '.hear, .skip, title, desc, script, style'; // for those who hear the page, or see it on focus

  // The boxes of all lines of text.
  const lines = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, e = node.parentElement;
    if (!node.data.trim() || e.closest(unseen) || !shown(e)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const r of range.getClientRects()) if (r.width > 0.5) lines.push({e, r, text: node.data.trim().slice(0, 40)});
  }

  const checks = {
    'overlap'() {
      lines.sort((a, b) => a.r.top - b.r.top);
      const slack = 2; // of the boxes of letters, which are higher and wider than what is drawn
      lines.forEach((a, i) => {
        for (let k = i + 1; k < lines.length && lines[k].r.top < a.r.bottom - slack; k++) {
          const b = lines[k];
          if (Math.min(a.r.right, b.r.right) - Math.max(a.r.left, b.r.left) > slack) {
            say('overlap', b.e, JSON.stringify(a.text) + ' and ' + JSON.stringify(b.text));
          }
        }
      });
    },
    'cut-off'() {
      const width = document.documentElement.clientWidth;
      for (const {e, r, text} of lines) {
        if (r.left < -1 || r.right > width + 1) say('cut-off', e, JSON.stringify(text) + ' by the window');
        for (let box = e; box && box !== document.documentElement; box = box.parentElement) {
          const s = getComputedStyle(box), q = box.getBoundingClientRect();
          const over = (way, before, after) => s[way] !== 'visible' && (before > 1 || after > 1);
          if (box.closest('svg') || s.display === 'inline') continue;
          if (over('overflowX', q.left - r.left, r.right - q.right) || over('overflowY', q.top - r.top, r.bottom - q.bottom)) {
            say('cut-off', box, JSON.stringify(text) + ' by its box');
            break;
          }
        }
      }
    },
  };
  for (const check of Object.values(checks)) check();
  return {wrong: wrong.slice(0, 12), checks: Object.keys(checks)};
})()
