/** The session that tabs share: one storage entry, checked on every read. */
import { tokenWarningSeconds } from "#rpc/client-limits"
import { ClientError, isRecord } from "./errors.ts"
import { onWindow } from "./page-listeners.ts"
import { memoryStorage, type SessionStorage } from "./storage.ts"
import type { Player, Session } from "./wire.ts"

/** `expiresAt`: expiry of the access token, in Unix milliseconds. */
export interface StoredSession {
  readonly player: Player
  readonly accessToken: string
  readonly refreshToken: string
  readonly expiresAt: number
  /** Key of the refresh that got no response yet. */
  readonly repeatKey?: string
}

/**
 * Time before their expiry at which the client renews access tokens. It is earlier than the
 * socket's warning, which then finds a new token.
 */
const renewalMarginMillis = (tokenWarningSeconds + 15) * 1000

/** Whether the access token is valid for longer than the renewal margin. */
export const isFresh = ({ expiresAt }: StoredSession, now: number): boolean =>
  expiresAt - now > renewalMarginMillis

/** Converts the service's response to the stored form. */
export const fromResponse = (session: Session, now: number): StoredSession => {
  const { accessToken, expiresIn, player, refreshToken } = session
  const stored = { player, accessToken, refreshToken, expiresAt: now + expiresIn * 1000 }
  if (isStored(stored)) return stored
  throw new ClientError("unreadable_response", "No session in the response.")
}

const isStored = (value: unknown): value is StoredSession =>
  isRecord(value) &&
  isRecord(value["player"]) &&
  [value["player"]["id"], value["accessToken"], value["refreshToken"]].every(
    (text) => typeof text === "string"
  ) &&
  typeof value["expiresAt"] === "number"

/** The entry of the session in a storage. After the first failure it lives in memory. */
export interface SessionEntry {
  /** Reads the session. Resolves to undefined if there is none or it is malformed. */
  read(): Promise<StoredSession | undefined>
  write(session: StoredSession | undefined): Promise<void>
  /** Adds a listener for writes by others, such as another tab. Returns its removal. */
  watch(listener: () => void): () => void
  /** Whether the session outlives the page, as far as known. */
  readonly isPersistent: boolean
}

const noStorage = (): TypeError =>
  new TypeError("Outside of a page, pass the option storage for each player.")

export const storedSession = (storage: SessionStorage | undefined, name: string): SessionEntry => {
  let current = storage
  const attempt = async <A>(use: (storage: SessionStorage) => A | Promise<A>): Promise<A> => {
    if (current === undefined) throw noStorage()
    try {
      return await use(current)
    } catch {
      current = memoryStorage()
      return use(current)
    }
  }
  return {
    read: async () => {
      const text = await attempt((it) => it.getItem(name))
      try {
        const value: unknown = JSON.parse(String(text))
        return isStored(value) ? value : undefined
      } catch {
        return undefined
      }
    },
    write: (session) =>
      attempt((it) =>
        session === undefined ? it.removeItem(name) : it.setItem(name, JSON.stringify(session))
      ),
    watch: (listener) => {
      const stop = storage?.onChange?.(listener)
      const stopWindow = onWindow("storage", ({ key }) => {
        // The event of `clear` has a null key.
        if (key === name || key === null) listener()
      })
      return () => {
        if (typeof stop === "function") stop()
        stopWindow()
      }
    },
    get isPersistent() {
      return current !== undefined && current.isVolatile !== true
    }
  }
}
