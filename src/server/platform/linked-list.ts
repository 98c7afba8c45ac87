/**
 * List that its entries leave in constant time, from any place. A `Set` does the same, but V8 keeps
 * what has left a long-lived one. Its old tables refer to the newer ones, and to their entries, so
 * the collections of the young generation copy garbage.
 */

/** The place of a value in a list. */
export interface Link<A> {
  readonly value: A
  next: Link<A> | undefined
  previous: Link<A> | undefined
  isIn: boolean
}

export class LinkedList<A> {
  #first: Link<A> | undefined
  #last: Link<A> | undefined

  get isEmpty(): boolean {
    return this.#first === undefined
  }

  /** Appends a value. */
  add(value: A): Link<A> {
    const link: Link<A> = { value, next: undefined, previous: this.#last, isIn: true }
    if (this.#last === undefined) this.#first = link
    else this.#last.next = link
    this.#last = link
    return link
  }

  /** Removes a value by its place; a second time does nothing. */
  remove(link: Link<A>): void {
    if (!link.isIn) return
    const { next, previous } = link
    if (previous === undefined) this.#first = next
    else previous.next = next
    if (next === undefined) this.#last = previous
    else next.previous = previous
    link.isIn = false
    // An entry that is garbage must not keep its neighbours.
    link.next = undefined
    link.previous = undefined
  }

  /** Iterates over the places in order. No place may be removed meanwhile. */
  *[Symbol.iterator](): Generator<Link<A>, void> {
    for (let link = this.#first; link !== undefined; link = link.next) yield link
  }
}
