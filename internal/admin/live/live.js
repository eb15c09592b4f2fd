// Keeps a view of Berth's page fresh: the daemon says when it may be old, and it is asked for again as it is. Without
// this script every view is the same, as of when it was loaded.
(() => {
  'use strict';

  // What is known of the cell or the row under the pointer, or of that which has the focus, stands beside the map.
  function explain(e) {
    const box = document.querySelector('.explain');
    const at = box && e.target.closest && e.target.closest('.map a, [data-table=addresses] tbody tr, [data-table=parts] tbody tr');
    if (!at) return;
    const href = (at.matches('tr') ? at.querySelector('a') || at : at).getAttribute('href');
    const same = (q) => href && [...document.querySelectorAll(q)].find((a) => a.getAttribute('href') === href);
    const cell = at.matches('tr') ? same('.map a') : at;
    const row = at.matches('tr') ? at : (same('tbody a') || at).closest('tr');
    document.querySelectorAll('.map .at').forEach((a) => a.classList.remove('at'));
    if (cell) cell.classList.add('at');
    const list = document.createElement('dl');
    const add = (name, value) => {
      const div = document.createElement('div'), dt = document.createElement('dt'), dd = document.createElement('dd');
      dt.textContent = name;
      dd.textContent = value;
      div.append(dt, dd);
      list.append(div);
    };
    if (row) {
      const heads = row.closest('table').tHead.rows[0].cells;
      [...row.cells].forEach((c, i) => { if (!c.hidden && c.textContent.trim()) add(heads[i].textContent, c.textContent); });
    } else {
      const [what, ...state] = at.querySelector('title').textContent.split(': ');
      add('Address', what);
      add('State', state.join(': '));
    }
    box.replaceChildren(list);
  }
  document.addEventListener('pointerover', explain);
  document.addEventListener('focusin', explain);

  const main = document.getElementById('main');
  const news = main && main.dataset.live;
  if (!news || !window.EventSource) return;

  const LEAST = 2000; // ms between two refreshments; ten times as long as one took, where that is more
  let source = null, timer = 0, old = false, asking = false, paused = false, next = 0, mark = '';

  const button = document.createElement('button');
  const since = document.createElement('span');
  const box = document.createElement('p');
  box.className = 'live';
  button.type = 'button';
  box.append(button, ' ', since);
  document.querySelector('footer').prepend(box);

  function say(text) { since.textContent = text; }

  // Somebody who writes into a form, or has marked text, is not disturbed.
  function inUse() {
    const at = document.activeElement;
    const text = window.getSelection();
    return (at && main.contains(at) && at.matches('input:not([type=checkbox]), select, textarea')) ||
      (text && !text.isCollapsed && main.contains(text.anchorNode));
  }

  function later() {
    if (!timer && old && !asking) timer = setTimeout(refresh, Math.max(0, next - Date.now()));
  }

  async function refresh() {
    timer = 0;
    if (paused || document.hidden) return;
    if (inUse()) { next = Date.now() + LEAST; later(); return; }
    old = false;
    asking = true;
    const begun = Date.now();
    try {
      const answer = await fetch(location.href, {headers: {Accept: 'text/html'}, cache: 'no-store'});
      if (!answer.ok) throw new Error(String(answer.status));
      const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html').getElementById('main');
      if (fresh && !inUse()) {
        const at = document.activeElement, link = at && at.getAttribute('href');
        change(main, fresh);
        keepFocus(at, link);
        say('as of ' + main.dataset.now);
      }
    } catch (e) {
      say('as of ' + main.dataset.now + ': the page could not be refreshed');
    }
    asking = false;
    next = Date.now() + Math.max(LEAST, 10 * (Date.now() - begun));
    later();
  }

  // change makes one element like another, and leaves alone what is the same.
  function change(is, will) {
    if (is.isEqualNode(will) || is.matches('.explain')) return;
    for (const a of [...is.attributes]) if (!will.hasAttribute(a.name)) is.removeAttribute(a.name);
    for (const a of will.attributes) if (is.getAttribute(a.name) !== a.value) is.setAttribute(a.name, a.value);
    const had = [...is.childNodes], has = [...will.childNodes];
    has.forEach((node, i) => {
      const one = had[i];
      if (!one) is.append(document.adoptNode(node));
      else if (one.nodeType === 1 && node.nodeType === 1 && one.nodeName === node.nodeName) change(one, node);
      else if (!one.isEqualNode(node)) one.replaceWith(document.adoptNode(node));
    });
    had.slice(has.length).forEach((node) => node.remove());
  }

  // The same link keeps the focus, wherever it stands now.
  function keepFocus(at, link) {
    if (!link || (at.isConnected && at.getAttribute('href') === link)) return;
    const same = [...main.querySelectorAll('a[href]')].find((a) => a.getAttribute('href') === link);
    if (same) same.focus({preventScroll: true});
  }

  // A browser has few connections to one host: only a page that is looked at keeps one.
  function follow() {
    const wanted = !paused && !document.hidden;
    button.textContent = paused ? 'Refresh automatically' : 'Stop refreshing';
    if (paused) say('not refreshed');
    if (wanted && !source) {
      const from = new URL(news, document.baseURI);
      if (mark) from.searchParams.set('after', mark);
      source = new EventSource(from);
      source.addEventListener('changed', (e) => { mark = e.lastEventId; old = true; later(); });
      later();
    } else if (!wanted && source) {
      source.close();
      source = null;
    }
  }

  button.addEventListener('click', () => {
    paused = !paused;
    try { sessionStorage.setItem('berth-paused', paused ? 'yes' : ''); } catch (e) { /* it is forgotten then */ }
    if (!paused) say('');
    follow();
  });
  document.addEventListener('visibilitychange', follow);
  try { paused = sessionStorage.getItem('berth-paused') === 'yes'; } catch (e) { /* nothing is kept here */ }
  say('as of ' + main.dataset.now);
  follow();
})();
