/** What the benchmark of slow clients measures: connections at rest first, then what they do. */
import type { Service } from "./service.ts"

/** A guest with an address of its own, as a trusted proxy forwards it. */
export interface Guest {
  readonly token: string
  readonly headers: Readonly<Record<string, string>>
}

/** What a scenario needs of the benchmark. */
export interface Bench {
  readonly service: Service
  readonly signIn: () => Promise<Guest>
}

/** What connections do that have rested before, for as long as it is measured. */
export interface Phase {
  readonly name: string
  readonly run: () => Promise<void>
}

/** Connections at rest. */
export interface Crowd {
  readonly phases: ReadonlyArray<Phase>
  /** Closes the connections; what to say of them. */
  readonly end: () => Promise<string>
}

export interface Scenario {
  readonly name: string
  readonly gather: (bench: Bench) => Promise<Crowd>
}
