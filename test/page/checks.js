// What each view is held to, by the names that docs/dev/page-checks.md has: a function each, which tells what is wrong.
(() => {
  const wrong = [];
  const all = (q, of = document) => [...of.querySelectorAll(q)];
  const called = (e) => (e.outerHTML || '').replace(/\s+/g, ' ').slice(0, 160);
  const say = (check, e, text) => wrong.push(check + ': ' + text + (e ? ' — ' + called(e) : ''));
  const shown = (e) => e.getClientRects().length > 0 && e.checkVisibility({visibilityProperty: true});
  const text = (e) => (e.textContent || '').trim();

  // A name, as far as this page makes them (accname-1.2): referred to, given, of the label, of the content, the title.
  function name(e) {
    const by = e.getAttribute('aria-labelledby');
    if (by) return by.split(/\s+/).map((id) => document.getElementById(id)).map((n) => n ? text(n) : '').join(' ').trim();
    if (e.getAttribute('aria-label')) return e.getAttribute('aria-label').trim();
    if (e.labels && e.labels.length) return [...e.labels].map(text).join(' ').trim();
    if (e.matches('svg')) return text(e.querySelector(':scope > title') || {});
    if (e.matches('a, button, summary, [role=button]')) return text(e) || all('svg[role=img], img[alt]', e).map(name).join(' ');
    if (e.matches('img')) return e.alt;
    if (e.matches('table')) return text(e.caption || {});
    return e.title || '';
  }

  const checks = {
    'document-title'() { if (!document.title.trim()) say('document-title', null, 'no title'); },
    'html-lang'() { if (!document.documentElement.lang) say('html-lang', null, 'no language'); },
    'viewport'() {
      const v = document.querySelector('meta[name=viewport]');
      if (!v || /user-scalable|maximum-scale/.test(v.content)) say('viewport', v, 'cannot be enlarged');
    },
    'no-refresh'() { if (document.querySelector('meta[http-equiv=refresh]')) say('no-refresh', null, 'moves by itself'); },
    'landmarks'() {
      if (all('main').length !== 1) say('landmarks', null, all('main').length + ' main');
      if (all('body > header').length !== 1) say('landmarks', null, 'no banner');
      for (const e of all('nav')) if (!name(e)) say('landmarks', e, 'a navigation without a name');
      for (const e of document.body.children) {
        if (shown(e) && text(e) && !e.matches('header, main, footer, nav, aside, .skip, script')) say('landmarks', e, 'in none');
      }
    },
    'skip-link'() {
      const first = document.querySelector('a[href], button, input');
      const to = first && document.getElementById((first.getAttribute('href') || '#').slice(1));
      if (!to || !to.matches('main')) say('skip-link', first, 'the first stop does not lead to the content');
    },
    'headings'() {
      const hs = all('h1, h2, h3, h4, h5, h6').filter(shown);
      if (hs.filter((h) => h.matches('h1')).length !== 1) say('headings', null, 'not one h1');
      let before = 0;
      for (const h of hs) {
        const level = Number(h.nodeName[1]);
        if (level > before + 1) say('headings', h, 'after level ' + before);
        if (!text(h)) say('headings', h, 'empty');
        before = level;
      }
    },
    'names'() {
      for (const e of all('a[href], button, input:not([type=hidden]), select, textarea, summary, [role=img], [role=region], ' +
        '[role=button], svg:not([aria-hidden=true]), img')) {
        if (shown(e) && !e.closest('[aria-hidden=true]') && !name(e)) say('names', e, 'no name');
      }
    },
    'labels'() {
      for (const e of all('input:not([type=hidden]), select, textarea')) {
        if (!(e.labels && e.labels.length) && !e.getAttribute('aria-label')) say('labels', e, 'no label');
      }
    },
    'svg-description'() {
      for (const e of all('svg[role=img]')) if (!e.querySelector(':scope > title')) say('svg-description', e, 'no title');
    },
    'tables'() {
      for (const t of all('table')) {
        const heads = all('thead th', t);
        if (!heads.length || heads.some((h) => h.scope !== 'col' || !text(h))) say('tables', t, 'columns without headings');
        const region = t.closest('[role=region]');
        if (!name(t) && !(region && name(region))) say('tables', t, 'no name');
        for (const r of all('tbody tr', t)) if (r.cells.length !== heads.length) say('tables', r, 'not a cell for each column');
      }
    },
    'lists'() {
      for (const e of all('ul, ol')) for (const c of e.children) if (!c.matches('li, script')) say('lists', c, 'in a list');
      for (const e of all('dl')) for (const c of e.children) if (!c.matches('div, dt, dd')) say('lists', c, 'in a list');
    },
    'ids'() {
      const seen = new Set();
      for (const e of all('[id]')) { if (seen.has(e.id)) say('ids', e, 'twice'); seen.add(e.id); }
      for (const a of ['for', 'aria-labelledby', 'aria-describedby', 'aria-controls']) {
        for (const e of all('[' + a + ']')) for (const id of e.getAttribute(a).split(/\s+/)) {
          if (!document.getElementById(id)) say('ids', e, a + ' leads to nothing');
        }
      }
    },
    'aria'() {
      const roles = ['search', 'region', 'img', 'alert', 'status', 'group', 'list', 'listitem', 'note', 'figure', 'presentation'];
      for (const e of all('[role]')) if (!roles.includes(e.getAttribute('role'))) say('aria', e, 'a role that is not known here');
      for (const e of all('*')) for (const a of e.attributes) {
        if (a.name.startsWith('aria-') && !['aria-label', 'aria-labelledby', 'aria-describedby', 'aria-current', 'aria-hidden',
          'aria-pressed', 'aria-sort', 'aria-expanded', 'aria-controls', 'aria-live'].includes(a.name)) say('aria', e, a.name);
        if (/^on/.test(a.name)) say('aria', e, 'a handler in an attribute');
      }
      for (const e of all('[aria-hidden=true] a, [aria-hidden=true] button, [aria-hidden=true] input, [aria-hidden=true] [tabindex]')) {
        say('aria', e, 'can be reached and is not told');
      }
    },
    'tab-order'() { for (const e of all('[tabindex]')) if (e.tabIndex > 0) say('tab-order', e, 'out of order'); },
    'scrollable-by-keyboard'() {
      for (const e of all('*')) {
        const o = getComputedStyle(e).overflowX;
        if ((o === 'auto' || o === 'scroll') && e.scrollWidth > e.clientWidth + 1 && e.tabIndex < 0 && !e.querySelector('a, button, input')) {
          say('scrollable-by-keyboard', e, 'cannot be scrolled by keyboard');
        }
      }
    },
    'reflow'() {
      const d = document.documentElement;
      if (d.scrollWidth > d.clientWidth) {
        const e = all('body *').filter((x) => shown(x) && x.getBoundingClientRect().right > d.clientWidth + 1 && !x.closest('.wide, .skip'))[0];
        say('reflow', e, 'scrolls sideways: ' + d.scrollWidth + ' of ' + d.clientWidth);
      }
    },
    'target-size'() { // WCAG 2.2, 2.5.8: 24 by 24, or as far apart; links in text are what the text makes them, and the
      // cells of a map lead where the table and the search do
      const targets = all('a[href]:not(svg a), button, input:not([type=hidden]), select, summary').filter(shown);
      const box = (e) => e.getBoundingClientRect();
      const mid = (r) => [r.left + r.width / 2, r.top + r.height / 2];
      for (const e of targets) {
        const r = box(e);
        if ((r.width >= 24 && r.height >= 24) || e.matches('.skip, p a, li p a')) continue;
        const [x, y] = mid(r);
        for (const o of targets) {
          if (o === e || o.contains(e) || e.contains(o)) continue;
          const q = box(o), small = q.width < 24 || q.height < 24, [ox, oy] = mid(q);
          const near = small ? Math.hypot(ox - x, oy - y) < 24 :
            Math.hypot(Math.max(q.left - x, 0, x - q.right), Math.max(q.top - y, 0, y - q.bottom)) < 12;
          if (near) { say('target-size', e, Math.round(r.width) + ' by ' + Math.round(r.height) + ', beside ' + called(o)); break; }
        }
      }
    },
    'contrast'() { // WCAG 2.2, 1.4.3 and 1.4.11
      const parse = (c) => { const m = c.match(/[\d.]+/g).map(Number); return m.length < 4 ? [...m.slice(0, 3), 1] : m; };
      const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
      const light = (c) => { const f = (v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
        return 0.2126 * f(c[0]) + 0.7152 * f(c[1]) + 0.0722 * f(c[2]); };
      const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((m, n) => n - m); return (x + 0.05) / (y + 0.05); };
      const back = (e) => {
        const layers = [];
        for (let n = e; n; n = n.parentElement) {
          const c = parse(getComputedStyle(n).backgroundColor);
          if (c[3] > 0) layers.push(c);
          if (c[3] === 1) break;
        }
        const dark = matchMedia('(prefers-color-scheme: dark)').matches;
        return layers.reverse().reduce((under, c) => over(c, under), dark ? [18, 18, 18, 1] : [255, 255, 255, 1]);
      };
      const held = new Set();
      const hold = (e, colour, under, least, what) => {
        const r = ratio(over(colour, under), under);
        const key = what + colour + under;
        if (r < least && !held.has(key)) { held.add(key); say('contrast', e, what + ' ' + r.toFixed(2) + ' of ' + least); }
      };
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const e = walker.currentNode.parentElement;
        if (!walker.currentNode.data.trim() || !shown(e) || e.closest('svg, title, script, style')) continue;
        const s = getComputedStyle(e), size = parseFloat(s.fontSize);
        hold(e, parse(s.color), back(e), size >= 24 || (size >= 18.66 && Number(s.fontWeight) >= 700) ? 3 : 4.5, 'text');
      }
      for (const e of all('svg text')) {
        if (!shown(e) || !text(e)) continue;
        const r = e.getBoundingClientRect(), x = r.left + r.width / 2, y = r.top + r.height / 2;
        const cell = all('rect', e.closest('svg')).filter((c) => { const q = c.getBoundingClientRect();
          return q.left <= x && x <= q.right && q.top <= y && y <= q.bottom; }).pop();
        const behind = back(e.closest('svg').parentElement);
        hold(e, parse(getComputedStyle(e).fill), cell ? over(parse(getComputedStyle(cell).fill), behind) : behind, 4.5, 'text of a map');
      }
      for (const e of all('input:not([type=hidden]), button, select, textarea')) {
        if (!shown(e)) continue;
        const s = getComputedStyle(e), under = back(e.parentElement);
        if (e.matches('input:not([type=checkbox], [type=radio]), select, textarea')) hold(e, parse(s.borderTopColor), under, 3, 'edge');
        hold(e, parse(s.color), back(e), 4.5, 'text of a control');
        if (e.placeholder) hold(e, parse(getComputedStyle(e, '::placeholder').color), back(e), 4.5, 'placeholder');
      }
    },
    'own-things-only'() {
      for (const e of all('[src], link[href], form[action], a[href]')) {
        const to = e.getAttribute('src') || e.getAttribute('href') || e.getAttribute('action');
        if (/^([a-z][a-z0-9+.-]*:|\/)/i.test(to)) say('own-things-only', e, 'not a relative link');
      }
      // the description carries its style, which its policy names by its digest
      const carried = location.pathname === '/docs' ? 'nothing' : 'style';
      for (const e of all('[style], script:not([src]), ' + carried)) say('own-things-only', e, 'written into the page');
    },
  };
  for (const check of Object.values(checks)) check();
  return {wrong, checks: Object.keys(checks)};
})()
