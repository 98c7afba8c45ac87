/** Findings of a fuzz run, grouped by kind, each with its count and one example. */

const exampleMax = 4000

export class Findings {
  readonly #found = new Map<string, { times: number; readonly example: string }>()

  /** Findings with the same `what` are grouped; `example` shows the first one in full. */
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
