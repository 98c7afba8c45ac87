/** Sign-in with an email address and a password, and the links in mails. */
import { authorized, updatePlayer, withRefreshToken } from "./authorized.ts"
import type { Module } from "./compose.ts"
import type { Core } from "./core.ts"
import { takeFragment } from "./oauth-callback.ts"
import { endOf, spend } from "./spend.ts"
import type { Profile } from "./tokens.ts"
import type { Player } from "./wire.ts"

/** An email address with its password. */
export interface Credentials {
  readonly email: string
  /** Password; a new one has 8 to 256 characters. */
  readonly password: string
}

/** Options of a mail with a link. */
export interface MailOptions {
  /**
   * Target of the link, with the token in the fragment. `auth.redirectUrls` must allow it. Default:
   * a page of the service.
   */
  readonly redirectUrl?: string
}

/** A mail link that led to this page. */
export interface MailLink {
  /** `verify`: call {@link Email.verify}. `reset`: ask for a new password, then {@link Email.reset}. */
  readonly purpose: "verify" | "reset"
  readonly token: string
}

/** Sign-in by email. */
export interface Email {
  /**
   * Creates a player and signs in, replacing the current session. To keep a guest's data, use
   * {@link Email.link} instead. Rejects with `email_taken`.
   *
   * @example
   * await client.email.signUp({ email, password, displayName: "Ada" })
   */
  signUp(account: Credentials & Profile & MailOptions): Promise<Player>

  /**
   * Signs in, replacing the current session. Rejects with `invalid_credentials` if the email or the
   * password is wrong.
   *
   * @example
   * await client.email.signIn({ email, password })
   */
  signIn(credentials: Credentials): Promise<Player>

  /**
   * Adds an email and a password to the signed-in player: a guest becomes permanent and keeps all its
   * data. Rejects with `identity_already_linked` or `email_already_linked`.
   *
   * @example
   * const { isGuest } = await client.email.link({ email, password })
   */
  link(account: Credentials & MailOptions): Promise<Player>

  /**
   * Sends the verification link again. Rejects with `mail_unavailable` or `rate_limited`.
   *
   * @example
   * if (!player.emailVerified) await client.email.resend()
   */
  resend(options?: MailOptions): Promise<void>

  /**
   * Sends a link to set a new password if the account exists. It also resolves if not.
   *
   * @example
   * await client.email.forgot(email, { redirectUrl: "https://game.example.com/account" })
   */
  forgot(email: string, options?: MailOptions): Promise<void>

  /**
   * Returns the mail link that opened this page, and removes it from the address. Null if the page was
   * opened in another way, or on a second call.
   *
   * @example
   * const link = client.email.opened()
   * if (link?.purpose === "verify") await client.email.verify(link.token)
   */
  opened(): MailLink | null

  /**
   * Confirms the email of a verification link. Needs no session. Rejects with `invalid_token` if the link
   * was used or is older than 24 hours.
   *
   * @example
   * const { emailVerified } = await client.email.verify(token)
   */
  verify(token: string): Promise<Player>

  /**
   * Removes the email from the account that someone else created with it: the link "this was not me" of
   * a verification mail. Needs no session. Rejects with `invalid_token`.
   *
   * @example
   * await client.email.disown(token)
   */
  disown(token: string): Promise<void>

  /**
   * Sets a new password with the token of a reset link, and ends all sessions of the player. Rejects
   * with `invalid_token` if the link was used or is older than 30 minutes.
   *
   * @example
   * await client.email.reset(token, password)
   * await client.email.signIn({ email, password })
   */
  reset(token: string, password: string): Promise<void>

  /**
   * Changes the password, and signs the player out on every other device. Rejects with
   * `invalid_credentials` if the current password is wrong.
   *
   * @example
   * await client.email.changePassword(current, next)
   */
  changePassword(currentPassword: string, newPassword: string): Promise<void>
}

const opened = (): MailLink | null => {
  if (typeof document === "undefined") return null
  for (const purpose of ["verify", "reset"] as const) {
    const token = takeFragment(`svc_${purpose}`)
    if (token !== null) return { purpose, token }
  }
  return null
}

/** Accounts with an email and a password. */
const account = ({ http, tokens }: Core): Omit<Email, keyof ReturnType<typeof links>> => ({
  signUp: async (body) => {
    const { player } = await tokens.signIn(() =>
      http.request("POST /v1/auth/email/signup", { body })
    )
    return player
  },
  signIn: async (body) => {
    const { player } = await tokens.signIn(() =>
      http.request("POST /v1/auth/email/login", { body })
    )
    return player
  },
  link: async (body) => {
    const { player } = await authorized(tokens, (token) =>
      http.request("POST /v1/auth/link/email", { token, body })
    )
    return updatePlayer(tokens, player)
  },
  resend: async (body = {}) => {
    await authorized(tokens, (token) => http.request("POST /v1/auth/email/resend", { token, body }))
  },
  forgot: async (email, options = {}) => {
    await http.request("POST /v1/auth/password/forgot", { body: { email, ...options } })
  },
  changePassword: async (currentPassword, newPassword) => {
    const passwords = { currentPassword, newPassword }
    await withRefreshToken(tokens, (token, proof) =>
      http.request("POST /v1/auth/password/change", { token, body: { ...passwords, ...proof } })
    )
  }
})

/** The links in mails. A link works once; a repeat by its key succeeds, too. */
const links = (core: Core) => {
  const { http, tokens } = core
  return {
    opened,
    verify: async (token: string) => {
      const { player } = await spend(core, "verify", endOf(token), (headers) =>
        http.request("POST /v1/auth/email/verify", { body: { token }, headers })
      )
      return updatePlayer(tokens, player)
    },
    disown: async (token: string) => {
      await spend(core, "disown", endOf(token), (headers) =>
        http.request("POST /v1/auth/email/disown", { body: { token }, headers })
      )
    },
    reset: async (token: string, password: string) => {
      await spend(core, "reset", endOf(token), (headers) =>
        http.request("POST /v1/auth/password/reset", { body: { token, password }, headers })
      )
    }
  }
}

export const email: Module<Email> = (core) => ({ ...account(core), ...links(core) })
