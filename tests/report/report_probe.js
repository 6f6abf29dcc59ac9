// Runs inside a page of the report, at the end of its body, and tells the page around it what is
// wrong. Where the frame's name says so, it uses the form too.
'use strict';
(function () {
const problems = [];
const wrong = (...words) => { if (problems.length < 20) problems.push(words.join(' ')); };
const [scheme, width, useForm] = window.name.split(' ');
const words = element => element.textContent.trim().slice(0, 40);
const isShown = element => element.checkVisibility() && element.getClientRects().length > 0;
const hasText = element => Array.from(element.childNodes).some(
  node => node.nodeType === Node.TEXT_NODE && node.data.trim());

function colour(text) {
  const parts = text.match(/[\d.]+/g).map(Number);
  return { light: parts.slice(0, 3).map(part => part / 255), alpha: parts[3] ?? 1 };
}
function luminance(light) {
  const linear = light.map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}
function background(element) {
  for (let at = element; at; at = at.parentElement) {
    const found = colour(getComputedStyle(at).backgroundColor);
    if (found.alpha === 1) return found.light;
  }
  return [1, 1, 1];
}
// WCAG 2, level AA, for text of any size.
function checkContrast(element) {
  const style = getComputedStyle(element);
  const paint = element instanceof SVGElement ? style.fill : style.color;
  const both = [luminance(colour(paint).light), luminance(background(element))];
  const ratio = (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
  if (ratio < 4.5) wrong('contrast', ratio.toFixed(2), element.className, words(element));
}
function checkPlace(element) {
  if (element instanceof SVGElement) {
    const box = element.getBBox(), view = element.ownerSVGElement.viewBox.baseVal;
    if (box.x < 0 || box.y < 0 || box.x + box.width > view.width || box.y + box.height > view.height)
      wrong('clipped in its plot:', words(element));
    return;
  }
  const range = document.createRange();
  range.selectNodeContents(element);
  for (const box of range.getClientRects())
    if (box.left < -1 || box.right > innerWidth + 1) {
      wrong('beyond the page:', element.tagName, element.className, words(element));
      return;
    }
}
function checkLayout(state) {
  const before = problems.length;
  const root = document.documentElement;
  if (root.scrollWidth > innerWidth) wrong('scrolls sideways:', root.scrollWidth, innerWidth);
  for (const element of document.body.querySelectorAll('*')) {
    if (!isShown(element) || element.tagName === 'SCRIPT') continue;
    const style = getComputedStyle(element);
    if (!(element instanceof SVGElement) && style.overflowX !== 'visible' &&
        element.scrollWidth > element.clientWidth)
      wrong('clipped:', element.tagName, element.className, words(element));
    if (!hasText(element) || element.closest('select')) continue;
    checkContrast(element);
    checkPlace(element);
  }
  for (const name of document.querySelectorAll('.card h3'))
    if (isShown(name) && name.clientWidth < Math.min(200, 0.6 * innerWidth))
      wrong('too narrow:', name.clientWidth, words(name));
  if (problems.length > before) problems.push('... ' + state);
}

const cards = Array.from(document.querySelectorAll('.card'));
const visible = () => Array.from(document.querySelectorAll('.card')).filter(isShown);
const form = document.querySelector('.tools');
function set(values) {
  for (const select of form.querySelectorAll('input, select'))
    select.value = values[select.name] ?? select.dataset.first;
  form.dispatchEvent(new Event('input', { bubbles: true }));
}
// The values in the order of the page, section by section.
function checkSorted(sort, order, member) {
  set({ sort, order });
  for (const section of document.querySelectorAll('section')) {
    const values = Array.from(section.querySelectorAll('.card'), card => card.dataset[member])
      .map(text => text === undefined ? null : Number(text));
    const known = values.filter(value => value !== null);
    if (!known.every((value, i) => i === 0 || order * (value - known[i - 1]) >= 0) ||
        values.slice(0, known.length).includes(null))
      wrong('not sorted by', sort, order, values.join(' '));
  }
}
function checkFilter(values, fits) {
  set(values);
  const expected = cards.filter(fits).length, found = visible();
  if (expected === 0 || expected === cards.length) wrong('says nothing:', JSON.stringify(values));
  if (found.length !== expected || !found.every(fits))
    wrong('filter', JSON.stringify(values), found.length, 'instead of', expected);
  if (form.querySelector('output').textContent !== `${expected} of ${cards.length} shown`)
    wrong('the form says', form.querySelector('output').textContent);
}
function checkForm() {
  for (const select of form.querySelectorAll('input, select')) select.dataset.first = select.value;
  checkSorted('time', 1, 'picoseconds');
  checkSorted('time', -1, 'picoseconds');
  checkSorted('ratio', -1, 'permille');
  set({ sort: 'name', order: -1 });
  for (const section of document.querySelectorAll('section')) {
    const names = Array.from(section.querySelectorAll('.card'), card => card.dataset.name);
    if (names.join() !== names.slice().sort().reverse().join()) wrong('names:', names.join());
  }
  set({ sort: 'device', order: -1 });
  const devices = Array.from(document.querySelectorAll('section'), part => part.dataset.device);
  if (devices.join() !== devices.slice().sort().reverse().join()) wrong('devices:', devices.join());
  checkFilter({ name: 'SOFTMAX p=64' },
    card => card.dataset.name === 'softmax' && card.dataset.sizes.startsWith('P=64'));
  checkFilter({ accuracy: 'refused' }, card => card.dataset.accuracy === 'refused');
  checkFilter({ result: 'slower' }, card => Number(card.dataset.permille) < 990);
  checkFilter({ dtype: 'T=bf16' }, card => card.dataset.dtype === 'T=bf16');
  checkFilter({ device: devices[0] },
    card => card.closest('section').dataset.device === devices[0]);
  set({ name: 'no such op' });
  if (visible().length || !isShown(document.querySelector('.nothing'))) wrong('not empty');
  set({});
  const places = Array.from(document.querySelectorAll('.card'));
  if (!places.every((card, i) => card === cards[i])) wrong('the first order does not come back');
  form.elements.all.click();
  if (!cards.every(card => card.open)) wrong('not all are open');
  form.elements.all.click();
  if (cards.some(card => card.open)) wrong('not all are closed');
}
function checkKeyboard() {
  for (const element of document.querySelectorAll('summary, input, select, button')) {
    if (!isShown(element)) continue;
    element.focus();
    if (document.activeElement !== element || element.tabIndex < 0)
      wrong('no key reaches', element.tagName, words(element));
  }
}

if (innerWidth !== Number(width)) wrong('the page is', innerWidth, 'wide');
if (matchMedia('(prefers-color-scheme: dark)').matches !== (scheme === 'dark'))
  wrong('the page is not', scheme);
checkLayout('closed');
checkKeyboard();
if (useForm) checkForm();
for (const part of document.querySelectorAll('details')) part.open = true;
checkLayout('open');
parent.postMessage(JSON.stringify({ problems, cards: cards.length }), '*');
})();
