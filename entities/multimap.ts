/** Map from a key to a set of values; a key without values takes no memory. */
export class Multimap<Key, Value> {
  readonly #sets = new Map<Key, Set<Value>>()

  /** The number of keys. */
  get size(): number {
    return this.#sets.size
  }

  get keys(): Iterable<Key> {
    return this.#sets.keys()
  }

  has(key: Key): boolean {
    return this.#sets.has(key)
  }

  /** The values of a key; a copy, since values may go while a caller iterates. */
  get(key: Key): ReadonlyArray<Value> {
    return Array.from(this.#sets.get(key) ?? [])
  }

  add(key: Key, value: Value): void {
    const values = this.#sets.get(key)
    if (values === undefined) this.#sets.set(key, new Set([value]))
    else values.add(value)
  }

  delete(key: Key, value: Value): void {
    const values = this.#sets.get(key)
    if (values?.delete(value) === true && values.size === 0) this.#sets.delete(key)
  }
}
