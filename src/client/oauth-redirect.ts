/**
 * The browser part of an OAuth sign-in, in a popup or by a redirect of the page. Returns the code and
 * verifier for the exchange.
 */
import { ClientError } from "./errors.ts"
import { type ProviderResponse, returnToOpener, takeResponse } from "./oauth-callback.ts"
import { randomText } from "./pkce.ts"
import { openPopup } from "./popup.ts"
import type { Timers } from "./timers.ts"
import type { Provider, SignInError, SignInMode } from "./wire.ts"

/** Display of the provider's pages in the browser. */
export interface ProviderOptions {
  /**
   * `popup` keeps the page. `redirect` leaves it; after the return, `oauth.result()` has the result.
   * Default: `popup`, except in the in-app browser of X, which has no popups.
   */
  readonly mode?: SignInMode
  /**
   * Page to which the provider returns; default: this page. `auth.redirectUrls` must allow it, and
   * it must call `oauth.result()` or `returnToOpener()`. For a popup it must have this page's
   * origin.
   */
  readonly redirectUrl?: string
}

/** The input of an authorization. */
export interface AuthorizationRequest {
  readonly provider: Provider
  readonly redirectUrl: string
  readonly mode: SignInMode
  /** Whether to link the identity to the signed-in player. */
  readonly link: boolean
}

/** The provider's URL, and the PKCE verifier, which stays on this device. */
export interface Authorization {
  readonly url: string
  readonly verifier: string
}

/** The input of the exchange. */
export interface SignInCode {
  readonly code: string
  readonly verifier: string
}

/** User agents of in-app browsers that show no popups: X on Android and iOS. */
const appsWithoutPopups = /Twitter(?:Android| for i)/

/** Errors that the callback finds are the same as those of the exchange. */
const signInFailed = (reason: string): ClientError =>
  reason === "identity_already_linked"
    ? new ClientError(reason, "Another player has this account: sign in with it.")
    : new ClientError("oauth_failed", `Sign-in failed: ${reason}`, {
        // A newer service may have further reasons.
        reason: reason as SignInError
      })

const codeOf = ({ code, error }: ProviderResponse, verifier: string | null): SignInCode => {
  if (code === null || verifier === null) throw signInFailed(error ?? "expired")
  return { code, verifier }
}

/** Navigates to the provider. A player who returns with the back button has not signed in. */
const redirect = (url: string): Promise<never> =>
  new Promise((_, reject) => {
    const shown = ({ persisted }: PageTransitionEvent) => {
      if (!persisted) return
      window.removeEventListener("pageshow", shown)
      reject(signInFailed("access_denied"))
    }
    window.addEventListener("pageshow", shown)
    location.assign(url)
  })

/**
 * Sends the player to the provider. `name` is the key of the verifier in `sessionStorage` during a
 * redirect. The popup opens before the first await. `late` takes the code of a popup that seemed closed,
 * after the rejection.
 */
export const requestCode = async (
  name: string,
  begin: (start: AuthorizationRequest) => Promise<Authorization>,
  start: Pick<AuthorizationRequest, "provider" | "link">,
  options: ProviderOptions,
  timers: Timers,
  late: (code: SignInCode) => void
): Promise<SignInCode> => {
  if (typeof document === "undefined") throw new TypeError("Outside of a page, use oauth.start().")
  const { mode = appsWithoutPopups.test(navigator.userAgent) ? "redirect" : "popup" } = options
  const redirectUrl = new URL(options.redirectUrl ?? location.href, location.href)
  redirectUrl.hash = ""
  if (mode === "redirect") {
    const { url, verifier } = await begin({ ...start, mode, redirectUrl: redirectUrl.href })
    sessionStorage.setItem(name, verifier)
    return redirect(url)
  }
  if (redirectUrl.origin !== location.origin) {
    throw new TypeError(`A popup must return to ${location.origin}, not ${redirectUrl.origin}.`)
  }
  const popup = openPopup(randomText(), redirectUrl, timers)
  try {
    const { url, verifier } = await begin({ ...start, mode, redirectUrl: popup.returnTo })
    const response = await popup.show(url, ({ code }) => {
      if (code !== null) late({ code, verifier })
    })
    return codeOf(response, verifier)
  } finally {
    popup.close()
  }
}

/**
 * Returns the code that came back to this page, or null. In a popup it passes the response to the
 * opener and never returns.
 */
export const receiveCode = async (name: string): Promise<SignInCode | null> => {
  if (typeof document === "undefined") return null
  if (returnToOpener()) return new Promise(() => undefined)
  const response = takeResponse()
  if (response === null) return null
  const verifier = sessionStorage.getItem(name)
  sessionStorage.removeItem(name)
  return codeOf(response, verifier)
}
