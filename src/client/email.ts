/** Sign-in with an email and a password, and the links of mails (spec sections 4.1 and 5). */
import { Effect } from "effect"
import type { Player } from "#rpc/players"
import type { Credentials, Http, MailOptions, Profile } from "./http.ts"
import { takeFragment } from "./oauth-callback.ts"
import type { Tokens } from "./tokens.ts"

/** The link of a mail that has led to this page. */
export interface MailLink {
  /** `verify`: to {@link Email.verify}; `reset`: ask for a new password, to {@link Email.reset}. */
  readonly purpose: "verify" | "reset"
  readonly token: string
}

export interface Email {
  /**
   * Signs up as a new player, whoever was signed in before; a guest keeps its data by
   * {@link Email.link} instead. Rejects with `email_taken`.
   *
   * @example
   * await client.email.signUp({ email, password, displayName: "Ada" })
   */
  signUp(account: Credentials & Profile & MailOptions): Promise<Player>

  /**
   * Signs in, whoever was signed in before. Rejects with `invalid_credentials`, whichever of the two
   * is wrong.
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
   * Sends the verification link again.
   *
   * @example
   * if (!player.emailVerified) await client.email.resend()
   */
  resend(options?: MailOptions): Promise<void>

  /**
   * Sends a link to set a new password, if there is such an account; it resolves alike if not.
   *
   * @example
   * await client.email.forgot(email, { redirectUrl: "https://game.example.com/account" })
   */
  forgot(email: string, options?: MailOptions): Promise<void>

  /**
   * The link of a mail that has led here, once; null when the page was opened otherwise. It is taken
   * out of the page's address.
   *
   * @example
   * const link = client.email.opened()
   * if (link?.purpose === "verify") await client.email.verify(link.token)
   */
  opened(): MailLink | null

  /**
   * Confirms the email of a verification link, whoever is signed in. Rejects with `invalid_token` when
   * the link was used, or is older than 24 hours.
   *
   * @example
   * const { emailVerified } = await client.email.verify(token)
   */
  verify(token: string): Promise<Player>

  /**
   * Sets the password by a reset link, and signs the player out everywhere. Rejects with
   * `invalid_token` when the link was used, or is older than 30 minutes.
   *
   * @example
   * await client.email.reset(token, password)
   * await client.email.signIn({ email, password })
   */
  reset(token: string, password: string): Promise<void>

  /**
   * Sets a new password, and signs the player out on every other device. Rejects with
   * `invalid_credentials` when the current one is wrong.
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

type Run = <A, E>(effect: Effect.Effect<A, E>) => Promise<A>

export const makeEmail = (http: Http, tokens: Tokens, run: Run): Email => {
  const remember = ({ player }: { readonly player: Player }) =>
    Effect.as(tokens.update(player), player)
  return {
    signUp: (account) =>
      run(Effect.map(tokens.signIn(http.signUp(account)), ({ player }) => player)),
    signIn: (credentials) =>
      run(Effect.map(tokens.signIn(http.signIn(credentials)), ({ player }) => player)),
    link: (account) => run(Effect.flatMap(tokens.authorized(http.linkEmail(account)), remember)),
    resend: (options = {}) => run(Effect.asVoid(tokens.authorized(http.resend(options)))),
    forgot: (email, options = {}) => run(Effect.asVoid(http.forgot({ email, ...options }))),
    opened,
    verify: (token) => run(Effect.flatMap(http.verify(token), remember)),
    reset: (token, password) => run(Effect.asVoid(http.reset(token, password))),
    changePassword: (currentPassword, newPassword) =>
      run(
        Effect.asVoid(
          tokens.withRefreshToken((proof) =>
            http.changePassword({ currentPassword, newPassword, ...proof })
          )
        )
      )
  }
}
