/**
 * What comes back to a page in its address: sign-in codes of providers and tokens of mailed links
 * (spec sections 4.1 and 5, rule 9). They are read once and taken out of the address, so that they do
 * not stay in the history. Nothing is imported here: the page that a popup returns to needs no more.
 */

/** The query parameter by which the page that a popup returns to knows its popup. */
export const popupParameter = "svc_popup"

/** Where the answer goes when the provider's pages have cut the popup off from its opener. */
export const channelName = (popup: string): string => `${popupParameter}:${popup}`

/** Takes a text out of the fragment of the page's address; null when it is not there. */
export const takeFragment = (name: string): string | null => {
  const url = new URL(location.href)
  const text = new URLSearchParams(url.hash.slice(1)).get(name)
  if (text === null) return null
  url.hash = ""
  if (url.searchParams.has(popupParameter)) url.searchParams.delete(popupParameter)
  history.replaceState(history.state, "", url)
  return text
}

/** How a provider answered: by a sign-in code, or by what has gone wrong. */
export interface ProviderResponse {
  readonly code: string | null
  readonly error: string | null
}

/** Takes a provider's answer out of the address; null when there is none. */
export const takeResponse = (): ProviderResponse | null => {
  const code = takeFragment("svc_code")
  const error = code === null ? takeFragment("svc_error") : null
  return code === null && error === null ? null : { code, error }
}

/**
 * For the page that a popup returns to: hands the provider's answer to the page that opened the popup
 * and closes it. False when this is no such return. Call it first on that page; `client.oauth.result()`
 * does so too.
 *
 * @example
 * if (returnToOpener()) document.body.textContent = "You are signed in. You may close this window."
 */
export const returnToOpener = (): boolean => {
  const popup = new URLSearchParams(location.search).get(popupParameter)
  const answer = popup === null ? null : takeResponse()
  if (popup === null || answer === null) return false
  const message = { popup, ...answer }
  if (window.opener === null) {
    const channel = new BroadcastChannel(channelName(popup))
    channel.postMessage(message)
    channel.close()
  } else window.opener.postMessage(message, location.origin)
  window.close()
  return true
}
