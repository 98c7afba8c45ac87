/**
 * Registry of this node's links to entities of one kind. Opens a link on demand, forgets it when it has
 * ended, and registers it as the receiver of what an entity on this node sends.
 */
import { Multimap } from "#entities/multimap"

/** A link as the registry sees it. */
interface Link {
  readonly environmentId: string
  readonly ended: boolean
  readonly start: (onEnded: () => void) => void
}

/** Where a link leads to. */
export interface LinkTarget {
  readonly id: string
  readonly environmentId: string
  readonly name: string
}

/** Receivers of an entity's outputs on this node, by its id. */
interface Receivers<L> {
  set(id: string, receiver: L): unknown
  delete(id: string): boolean
}

export class LinkRegistry<L extends Link> {
  readonly #links = new Map<string, L>()
  readonly #byEnvironment = new Multimap<string, L>()
  readonly #idOf: (environmentId: string, name: string) => string
  readonly #make: (target: LinkTarget) => L
  readonly #receivers: Receivers<L>

  constructor(options: {
    /** The entity's id. */
    readonly idOf: (environmentId: string, name: string) => string
    readonly make: (target: LinkTarget) => L
    readonly receivers: Receivers<L>
  }) {
    this.#idOf = options.idOf
    this.#make = options.make
    this.#receivers = options.receivers
  }

  /** Returns the link to an entity, if there is one. */
  get(environmentId: string, name: string): L | undefined {
    const link = this.#links.get(this.#idOf(environmentId, name))
    return link?.ended === false && link.environmentId === environmentId ? link : undefined
  }

  byId(id: string): L | undefined {
    return this.#links.get(id)
  }

  /** The link to an entity; opens it if there is none. */
  open(environmentId: string, name: string): L {
    const id = this.#idOf(environmentId, name)
    const known = this.#links.get(id)
    if (known?.ended === false) return known
    const link = this.#make({ id, environmentId, name })
    this.#links.set(id, link)
    this.#byEnvironment.add(environmentId, link)
    this.#receivers.set(id, link)
    link.start(() => {
      this.#byEnvironment.delete(environmentId, link)
      if (this.#links.get(id) !== link) return
      this.#links.delete(id)
      this.#receivers.delete(id)
    })
    return link
  }

  /** The links to entities of an environment; a copy, since links may end while a caller iterates. */
  inEnvironment(environmentId: string): ReadonlyArray<L> {
    return this.#byEnvironment.get(environmentId)
  }
}
