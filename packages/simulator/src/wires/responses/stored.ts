/** What does the provider keep of its responses?
 *  Invariant: only of requests that did not say `store: false`; a chain of responses is kept link by link.
 *  Elsewhere: what becomes of the items (prompt.ts). */

import type { JsonObject } from "@prefork/wire";
import { stringOf } from "../../body.ts";

type Link = {
  readonly previous: string | undefined;
  readonly items: readonly JsonObject[];
};

export class StoredResponses {
  readonly #links = new Map<string, Link>();
  readonly #items = new Map<string, JsonObject>();

  keep(id: string, link: Link): void {
    this.#links.set(id, link);
    for (const item of link.items) if (item.id !== undefined) this.#items.set(stringOf(item.id), item);
  }

  item(id: string): JsonObject | undefined {
    return this.#items.get(id);
  }

  /** All items up to the end of that response; undefined if it is not kept. */
  upTo(id: string): readonly JsonObject[] | undefined {
    const chain: (readonly JsonObject[])[] = [];
    for (let at: string | undefined = id; at !== undefined; ) {
      const link: Link | undefined = this.#links.get(at);
      if (link === undefined) return undefined;
      chain.push(link.items);
      at = link.previous;
    }
    return chain.reverse().flat();
  }
}
