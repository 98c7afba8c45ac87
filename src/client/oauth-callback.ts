/**
 * Values that come back in the page's address: sign-in codes of providers and tokens of mail links. The
 * client reads them once and removes them from the address, so that they do not stay in the history.
 * This module imports nothing: a popup's callback page needs no more.
 */

/** The query parameter that identifies the popup to its callback page. */
export const popupParameter = "svc_popup"

/**
 * The broadcast channel for the response, when the provider's pages have cut the popup off from its
 * opener.
 */
export const channelName = (popup: string): string => `${popupParameter}:${popup}`

/** Removes a parameter from the fragment of the page's address and returns it, or null. */
export const takeFragment = (name: string): string | null => {
  const url = new URL(location.href)
  const text = new URLSearchParams(url.hash.slice(1)).get(name)
  if (text === null) return null
  url.hash = ""
  if (url.searchParams.has(popupParameter)) url.searchParams.delete(popupParameter)
  history.replaceState(history.state, "", url)
  return text
}

/** The provider's response: a sign-in code or an error. */
export interface ProviderResponse {
  readonly code: string | null
  readonly error: string | null
}

/** Removes a provider's response from the page's address and returns it, or null. */
export const takeResponse = (): ProviderResponse | null => {
  const code = takeFragment("svc_code")
  const error = code === null ? takeFragment("svc_error") : null
  return code === null && error === null ? null : { code, error }
}

/**
 * Passes the provider's response to the opener and closes the popup, for the callback page of a
 * popup. Returns false on any other page. Call it first on the callback page, unless you call
 * `client.oauth.result()`, which includes it.
 *
 * @example
 * if (returnToOpener()) document.body.textContent = "You are signed in. You may close this window."
 */
export const returnToOpener = (): boolean => {
  const popup = new URLSearchParams(location.search).get(popupParameter)
  const response = popup === null ? null : takeResponse()
  if (popup === null || response === null) return false
  const message = { popup, ...response }
  if (window.opener === null) {
    const channel = new BroadcastChannel(channelName(popup))
    channel.postMessage(message)
    channel.close()
  } else window.opener.postMessage(message, location.origin)
  window.close()
  return true
}
