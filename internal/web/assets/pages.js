// A long list of pages of different heights, of which only those near the visible part exist.
import { h } from "./dom.js";

const guess = 2400; // the height of a page that has not been shown, in pixels
const kept = 12; // pages that stay in memory after they were shown

export class Pages {
  // scroller is the element that scrolls. fill puts a page's content into its element.
  constructor(scroller, fill) {
    this.scroller = scroller;
    this.fill = fill;
    this.items = [];
    this.above = h("div", { class: "space" });
    this.below = h("div", { class: "space" });
    this.shown = [];
    this.recent = [];
    this.average = guess; // the height of pages that have not been shown
    this.following = false;
    scroller.append(this.above, this.below);
    scroller.addEventListener("scroll", () => {
      this.following = scroller.scrollTop > 0 && this.atEnd();
      this.schedule();
    }, { passive: true });
    this.sizes = new ResizeObserver((changes) => this.resized(changes));
    this.sizes.observe(scroller);
  }

  atEnd() {
    const { scrollTop, clientHeight, scrollHeight } = this.scroller;
    return scrollTop + clientHeight >= scrollHeight - 48;
  }

  // set replaces the pages from index first on. A page that begins where one was stays.
  set(first, pages) {
    const old = new Map(this.items.slice(first).map((item) => [item.page.from, item]));
    this.items.length = first;
    for (const page of pages) {
      const item = old.get(page.from) ?? { height: 0, element: null };
      old.delete(page.from);
      const grown = item.page && item.page.to !== page.to;
      item.page = page;
      if (grown && item.element) this.fill(item);
      this.items.push(item);
    }
    for (const item of old.values()) item.element?.remove();
    this.shown = this.shown.filter((item) => this.items.includes(item));
    this.schedule();
  }

  // refresh fills the pages that exist and that which selects again.
  refresh(which) {
    for (const item of this.shown) if (which(item)) this.fill(item);
  }

  // showEnd scrolls to the end and stays there while the list grows.
  showEnd() {
    this.following = true;
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.schedule();
  }

  // reveal scrolls to a page and returns once it is filled.
  async reveal(item) {
    this.layout();
    this.scroller.scrollTop = this.topOf(item);
    this.layout();
    await item.filled;
  }

  // scrollTo shows a range of text in the upper part of the scroller.
  scrollTo(range) {
    const top = range.getBoundingClientRect().top - this.scroller.getBoundingClientRect().top;
    this.scroller.scrollTop += top - this.scroller.clientHeight / 4;
  }

  schedule() {
    this.pending ??= requestAnimationFrame(() => {
      this.pending = null;
      this.layout();
    });
  }

  // layout makes the elements near the visible part and removes others. What is visible stays where
  // it is.
  layout() {
    const { clientHeight } = this.scroller;
    const moved = this.estimate();
    const scrollTop = this.scroller.scrollTop + moved;
    const from = scrollTop - clientHeight, to = scrollTop + 2 * clientHeight;
    let top = 0, before = 0, after = 0;
    const shown = [];
    for (const item of this.items) {
      const bottom = top + this.heightOf(item);
      if (bottom < from) before = bottom;
      else if (top <= to) shown.push(item);
      else after += bottom - top;
      top = bottom;
    }
    for (const item of this.shown) if (!shown.includes(item)) this.hide(item);
    this.above.style.height = `${before}px`;
    this.below.style.height = `${after}px`;
    let previous = this.above;
    for (const item of shown) {
      this.show(item);
      if (previous.nextSibling !== item.element) previous.after(item.element);
      previous = item.element;
    }
    this.shown = shown;
    if (this.following) this.scroller.scrollTop = this.scroller.scrollHeight;
    else if (moved) this.scroller.scrollTop = scrollTop;
  }

  heightOf(item) {
    return item.height || (item.element?.isConnected ? item.estimate : this.average);
  }

  // topOf returns how far below the beginning a page is.
  topOf(item) {
    let top = 0;
    for (const other of this.items) {
      if (other === item) break;
      top += this.heightOf(other);
    }
    return top;
  }

  // estimate updates the average, and returns how far that moves what is visible.
  estimate() {
    const known = this.items.filter((item) => item.height);
    if (known.length === 0) return 0;
    const first = this.shown.find((item) => item.element.offsetTop + item.element.offsetHeight > this.scroller.scrollTop);
    const top = first && this.topOf(first);
    this.average = known.reduce((sum, item) => sum + item.height, 0) / known.length;
    return first ? this.topOf(first) - top : 0;
  }

  show(item) {
    if (item.element) {
      if (!item.element.isConnected) this.sizes.observe(item.element);
      return;
    }
    item.element = h("div", { class: "page", "aria-busy": "true" });
    item.estimate = item.height || this.average;
    const { element } = item;
    element.style.minHeight = `${item.estimate}px`;
    element.item = item;
    this.sizes.observe(element);
    item.filled = this.fill(item).finally(() => {
      element.style.minHeight = "";
      element.removeAttribute("aria-busy");
    });
  }

  hide(item) {
    if (item.element.contains(document.activeElement)) this.scroller.focus({ preventScroll: true });
    this.sizes.unobserve(item.element);
    item.element.remove();
    if (item.unfinished) { // its calls may end before it is shown again
      item.element = null;
      item.content = null;
      return;
    }
    this.recent = [...this.recent.filter((other) => other !== item), item];
    if (this.recent.length > kept) {
      const oldest = this.recent.shift();
      if (!oldest.element?.isConnected) {
        oldest.element = null;
        oldest.content = null;
      }
    }
  }

  // resized notes the heights of pages. What is visible stays where it is.
  resized(changes) {
    let moved = 0;
    for (const { target } of changes) {
      const { item } = target;
      if (!item || !target.isConnected) continue;
      const height = target.offsetHeight, before = item.height || item.estimate;
      if (target.offsetTop + before <= this.scroller.scrollTop) moved += height - before;
      if (!target.hasAttribute("aria-busy")) item.height = height;
    }
    if (this.following) this.scroller.scrollTop = this.scroller.scrollHeight;
    else if (moved) this.scroller.scrollTop += moved;
    this.schedule();
  }
}
