/** What a storm finds: everything that must not be, each kind of it once, with how often and an example. */

const exampleMax = 4000

export class Findings {
  readonly #found = new Map<string, { times: number; readonly example: string }>()

  /** `what` is the same for all that have one cause; `example` shows one of them whole. */
  add(what: string, example: string): void {
    const known = this.#found.get(what)
    if (known === undefined)
      this.#found.set(what, { times: 1, example: example.slice(0, exampleMax) })
    else known.times += 1
  }

  get list(): ReadonlyArray<string> {
    return Array.from(
      this.#found,
      ([what, { example, times }]) => `${what} (${times} times): ${example}`
    )
  }
}
