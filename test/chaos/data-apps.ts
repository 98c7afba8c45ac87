/**
 * Apps that write saves and report stats through the typed client. Each compares the service with what
 * it acknowledged. A call without a reply may or may not have been carried out.
 */
import { type Client, isError } from "#client/client"
import type { App } from "./apps.ts"
import type { Journal } from "./journal.ts"

const key = "slot"

const member = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined

/** Writes one version of a save after the other; the data holds the version. */
export class SaveApp implements App {
  readonly kind = "saves"
  readonly name: string
  readonly #client: Client
  readonly #journal: Journal
  #version = 0
  /** A write got no reply; it may be carried out at any time. */
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
      if (version !== next) this.#violate(`version ${next} was written and became ${version}`)
      this.#version = version
    } catch (error) {
      this.#unsure = true
      if (!isError(error, "version_conflict") || !this.#everUnsure) {
        this.#everUnsure = true
        throw error
      }
    }
  }

  /** No acknowledged version is lost, and none is written twice. */
  async verify(): Promise<void> {
    const save = await this.#client.saves.get(key)
    const found = save?.version ?? 0
    const content = member(save?.data, "version")
    if (found !== this.#version && !(this.#unsure && found === this.#version + 1)) {
      this.#violate(`version ${this.#version} was acknowledged, ${found} is there`)
    }
    if (save !== null && content !== found) {
      this.#violate(`version ${found} holds the data of ${String(content)}`)
    }
    this.#version = found
    this.#unsure = false
  }

  #violate(what: string): void {
    this.#journal.violated(`${this.name}: ${what}`)
  }
}

/** Reports one kill after the other, each with its own idempotency key until it is acknowledged. */
export class StatApp implements App {
  readonly kind = "stats"
  readonly name: string
  readonly #client: Client
  readonly #journal: Journal
  #kills = 0
  /** The next report was sent and got no reply. */
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
    const total = stats["kills"]?.all
    if (total !== next) this.#violate(`report ${next} was answered with ${String(total)}`)
  }

  async verify(): Promise<void> {
    const { kills = 0 } = await this.#client.stats.get()
    if (kills !== this.#kills && !(this.#unsure && kills === this.#kills + 1)) {
      this.#violate(`${this.#kills} were acknowledged, ${kills} are counted`)
    }
  }

  #violate(what: string): void {
    this.#journal.violated(`${this.name}: ${what}`)
  }
}
