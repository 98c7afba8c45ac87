/**
 * Apps that save games and count kills, through the typed client: each knows exactly what was
 * acknowledged, and holds the service to it. A call without an answer may have been carried out.
 */
import { type Client, isError } from "#client/client"
import type { App } from "./apps.ts"
import type { Journal } from "./journal.ts"

const key = "slot"

const member = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined

/** Writes version after version of one save; what is in it is its version. */
export class Saver implements App {
  readonly kind = "saves"
  readonly name: string
  readonly #client: Client
  readonly #journal: Journal
  #version = 0
  /** A write was not answered; it may be carried out at any time. */
  #unsure = false
  #everUnsure = false

  constructor(name: string, client: Client, journal: Journal) {
    this.name = name
    this.#client = client
    this.#journal = journal
  }

  async step(): Promise<void> {
    if (this.#unsure) await this.verify()
    const next = this.#version + 1
    try {
      const { version } = await this.#client.saves.put(
        key,
        { version: next },
        { ifVersion: this.#version }
      )
      if (version !== next) this.#wrong(`version ${next} was written and became ${version}`)
      this.#version = version
    } catch (error) {
      this.#unsure = true
      if (!isError(error, "version_conflict") || !this.#everUnsure) {
        this.#everUnsure = true
        throw error
      }
    }
  }

  /** Nothing that was acknowledged is lost, nothing is there twice. */
  async verify(): Promise<void> {
    const save = await this.#client.saves.get(key)
    const found = save?.version ?? 0
    const content = member(save?.data, "version")
    if (found !== this.#version && !(this.#unsure && found === this.#version + 1)) {
      this.#wrong(`version ${this.#version} was acknowledged, ${found} is there`)
    }
    if (save !== null && content !== found) {
      this.#wrong(`version ${found} holds the data of ${String(content)}`)
    }
    this.#version = found
    this.#unsure = false
  }

  #wrong(what: string): void {
    this.#journal.violated(`${this.name}: ${what}`)
  }
}

/** Reports one kill after the other, each until it is acknowledged, under a key of its own. */
export class Counter implements App {
  readonly kind = "stats"
  readonly name: string
  readonly #client: Client
  readonly #journal: Journal
  #kills = 0
  /** The next report has been sent without an answer. */
  #unsure = false

  constructor(name: string, client: Client, journal: Journal) {
    this.name = name
    this.#client = client
    this.#journal = journal
  }

  async step(): Promise<void> {
    const next = this.#kills + 1
    this.#unsure = true
    const { stats } = await this.#client.stats.report(
      { kills: 1 },
      { idempotencyKey: `${this.name}-${next}` }
    )
    this.#unsure = false
    this.#kills = next
    const told = stats["kills"]?.all
    if (told !== next) this.#wrong(`report ${next} was answered with ${String(told)}`)
  }

  async verify(): Promise<void> {
    const { kills = 0 } = await this.#client.stats.get()
    if (kills !== this.#kills && !(this.#unsure && kills === this.#kills + 1)) {
      this.#wrong(`${this.#kills} were acknowledged, ${kills} are counted`)
    }
  }

  #wrong(what: string): void {
    this.#journal.violated(`${this.name}: ${what}`)
  }
}
