// The API as the page uses it.

export interface Amount {
  minor: number;
  currency: string;
}

export interface Order {
  id: string;
  items: { product: string; quantity: number; price: Amount }[];
  total: Amount;
}

/** Thrown when the service asks us to come back later. */
export class TryLater extends Error {
  constructor(readonly seconds: number) {
    super(`the service is busy, retry in ${seconds} s`);
  }
}

export async function placeOrder(order: Order): Promise<void> {
  const response = await fetch("/orders", { method: "POST", body: JSON.stringify(order) });
  if (response.status === 503) {
    throw new TryLater(Number(response.headers.get("Retry-After") ?? 30));
  }
  if (!response.ok) {
    throw new Error(await response.text());
  }
}
