// A long list of pages of different heights, of which only those near the visible part have content.
import { h } from "./dom.js";

const guess = 2400; // the height of a page that has not been shown, in pixels

export class Pages {
  // scroller is the element that scrolls. fill puts a page's content into its element.
  constructor(scroller, fill) {
    this.scroller = scroller;
    this.fill = fill;
    this.items = [];
    this.following = false;
    scroller.addEventListener("scroll", () => {
      const { scrollTop } = scroller, atEnd = scrollTop > 0 && scrollTop + scroller.clientHeight >= scroller.scrollHeight - 48;
      this.following = atEnd || this.following && scrollTop >= this.top; // more may have come since it scrolled
      this.top = scrollTop;
    }, { passive: true });
    this.near = new IntersectionObserver((changes) => {
      for (const { target, isIntersecting } of changes) {
        if (isIntersecting) this.show(target.item);
        else this.hide(target.item);
      }
    }, { root: scroller, rootMargin: "100% 0px" });
    this.sizes = new ResizeObserver((changes) => this.resized(changes));
    this.sizes.observe(scroller);
  }

  get last() {
    return this.items[this.items.length - 1];
  }

  // set replaces the pages from index first on. A page that begins where one was stays.
  set(first, pages) {
    const { last } = this;
    const old = new Map(this.items.slice(first).map((item) => [item.page.from, item]));
    this.items.length = first;
    for (const page of pages) {
      const item = old.get(page.from) ?? this.make();
      old.delete(page.from);
      const grown = item.page && item.page.to !== page.to;
      item.page = page;
      if (grown && item.shown) this.fill(item);
      if (!item.element.isConnected) this.scroller.insertBefore(item.element, this.last ? this.last.element.nextSibling : this.scroller.firstChild);
      this.items.push(item);
    }
    for (const { element } of old.values()) element.remove();
    if (!last || last === this.last) return;
    this.near.unobserve(last.element); // the last one stays, so whether it is near is asked again
    this.near.observe(last.element);
  }

  make() {
    const item = { element: h("div", { class: "page" }), height: guess };
    item.element.item = item;
    item.element.style.height = `${guess}px`;
    this.near.observe(item.element);
    this.sizes.observe(item.element);
    return item;
  }

  // refresh fills the pages that are shown and that which selects again.
  refresh(which) {
    for (const item of this.items) if (item.shown && which(item)) this.fill(item);
  }

  // showEnd scrolls to the end and stays there while the list grows.
  showEnd() {
    this.following = true;
    this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  // reveal scrolls to a page and returns once it is filled.
  async reveal(item) {
    this.scroller.scrollTop = item.element.offsetTop;
    this.show(item);
    await item.filled;
  }

  // scrollTo shows a range of text in the upper part of the scroller.
  scrollTo(range) {
    const top = range.getBoundingClientRect().top - this.scroller.getBoundingClientRect().top;
    this.scroller.scrollTop += top - this.scroller.clientHeight / 4;
  }

  show(item) {
    if (item.shown) return;
    const shown = item.shown = {};
    item.element.ariaBusy = "true";
    item.filled = this.fill(item).finally(() => {
      if (item.shown === shown) item.element.style.height = "";
      item.element.ariaBusy = null;
    });
  }

  hide(item) {
    if (!item.shown || item === this.last || !item.element.isConnected) return;
    if (item.element.contains(document.activeElement)) this.scroller.focus({ preventScroll: true });
    item.shown = null;
    item.element.style.height = `${item.height}px`;
    item.element.replaceChildren();
    item.content = null;
  }

  // resized notes the heights of pages. What is visible stays where it is.
  resized(changes) {
    let moved = 0;
    for (const { target: { item, offsetTop, offsetHeight } } of changes) {
      if (!item) continue;
      if (offsetTop + item.height <= this.scroller.scrollTop) moved += offsetHeight - item.height;
      item.height = offsetHeight;
    }
    if (this.following) this.showEnd();
    else if (moved) this.scroller.scrollTop += moved;
  }
}
