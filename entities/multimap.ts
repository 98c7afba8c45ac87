/** Map from a key to a set of values; a key without values takes no memory, and one value no set. */
export class Multimap<Key, Value extends object> {
  readonly #values = new Map<Key, Value | Set<Value>>()

  /** The number of keys. */
  get size(): number {
    return this.#values.size
  }

  get keys(): Iterable<Key> {
    return this.#values.keys()
  }

  has(key: Key): boolean {
    return this.#values.has(key)
  }

  /** The values of a key; a copy, since values may go while a caller iterates. */
  get(key: Key): ReadonlyArray<Value> {
    const values = this.#values.get(key)
    if (values === undefined) return []
    return values instanceof Set ? Array.from(values) : [values]
  }

  add(key: Key, value: Value): void {
    const values = this.#values.get(key)
    if (values === undefined) this.#values.set(key, value)
    else if (values instanceof Set) values.add(value)
    else if (values !== value) this.#values.set(key, new Set([values, value]))
  }

  delete(key: Key, value: Value): void {
    const values = this.#values.get(key)
    if (values === value) this.#values.delete(key)
    else if (values instanceof Set && values.delete(value) && values.size === 0) {
      this.#values.delete(key)
    }
  }
}
