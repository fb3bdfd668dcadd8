import type { Amount, Order } from "./client.js";

/** Formats minor units in the reader's language: 1250 EUR is "€12.50". */
export function format(amount: Amount, locale = navigator.language): string {
  const number = new Intl.NumberFormat(locale, { style: "currency", currency: amount.currency });
  const digits = number.resolvedOptions().maximumFractionDigits ?? 2;
  return number.format(amount.minor / 10 ** digits);
}

export function render(orders: Order[], list: HTMLUListElement): void {
  list.replaceChildren(
    ...orders.map((order) => {
      const row = document.createElement("li");
      row.textContent = `${order.id}: ${order.items.length} items, ${format(order.total)}`;
      return row;
    }),
  );
}
