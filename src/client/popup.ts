/**
 * A popup for a provider's pages. Its callback page, on this page's origin, sends the response as a
 * message (see `oauth-callback.ts`). The page or the provider may cut the popup off from its opener
 * (Cross-Origin-Opener-Policy). It then looks closed although it is open, and the response comes over a
 * broadcast channel.
 */
import { ClientError, isRecord } from "./errors.ts"
import { channelName, popupParameter, type ProviderResponse } from "./oauth-callback.ts"
import type { Timers } from "./timers.ts"

export interface Popup {
  /** The callback URL, with the popup's id. */
  readonly returnTo: string
  /**
   * Shows the provider's page and waits for its response. `late` takes the response of a popup that
   * only looked closed, after the rejection.
   */
  readonly show: (
    url: string,
    late: (response: ProviderResponse) => void
  ) => Promise<ProviderResponse>
  readonly close: () => void
}

/** The service waits as long for a provider. */
const signInMillis = 10 * 60_000
/** Interval at which the page looks whether the popup is closed. */
const lookMillis = 500
/** The response of a popup that closes itself may still arrive for this long. */
const lateMillis = 1000
/** A popup that is cut off is given up after the page has had the focus for this long. */
const cutOffMillis = 30_000

const features = "popup,width=500,height=700"

/** Opens the popup. Call it synchronously in a click handler: browsers block it otherwise. */
export const openPopup = (id: string, redirectUrl: URL, timers: Timers): Popup => {
  const opened = window.open("", "_blank", features)
  if (opened === null) {
    const message = "The browser blocked the popup: call from a click, or redirect."
    throw new ClientError("popup_blocked", message)
  }
  const url = new URL(redirectUrl)
  url.searchParams.set(popupParameter, id)
  return {
    returnTo: url.href,
    show: (provider, late) => {
      opened.location.replace(provider)
      return awaitResponse(id, opened, timers, late)
    },
    close: () => opened.close()
  }
}

const isText = (value: unknown): value is string | null =>
  value === null || typeof value === "string"

const responseOf = (data: unknown, id: string): ProviderResponse | undefined => {
  if (!isRecord(data) || data["popup"] !== id) return undefined
  const { code, error } = data
  return isText(code) && isText(error) ? { code, error } : undefined
}

/**
 * Rejects when the popup is closed and this page has the focus. A popup that looks closed while it has
 * the focus, or whose page is isolated, is cut off: only time shows whether it is closed. The response of
 * a popup that was given up goes to `late`.
 */
const awaitResponse = (
  id: string,
  opened: Window,
  timers: Timers,
  late: (response: ProviderResponse) => void
): Promise<ProviderResponse> =>
  new Promise((resolve, reject) => {
    const channel = new BroadcastChannel(channelName(id))
    let isCutOff = globalThis.crossOriginIsolated
    let deliver: (response: ProviderResponse) => void = resolve
    let stopLooking = () => undefined as void
    const onMessage = ({ data, origin }: MessageEvent<unknown>) => {
      const response = responseOf(data, id)
      if (origin !== location.origin || response === undefined) return
      end()
      deliver(response)
    }
    const end = () => {
      window.removeEventListener("message", onMessage)
      channel.close()
      stopLooking()
      stopWaiting()
    }
    const giveUp = () => {
      if (!document.hasFocus()) return look()
      deliver = late
      reject(new ClientError("popup_closed", "The popup was closed."))
    }
    const look = () => {
      const isClosed = opened.closed
      const isShown = isClosed && !document.hasFocus()
      isCutOff ||= isShown
      if (!isClosed || isShown) stopLooking = timers.after(lookMillis, look)
      else stopLooking = timers.after(isCutOff ? cutOffMillis : lateMillis, giveUp)
    }
    const stopWaiting = timers.after(signInMillis, () => {
      end()
      reject(new ClientError("timed_out", "No sign-in within 10 minutes."))
    })
    window.addEventListener("message", onMessage)
    channel.addEventListener("message", onMessage)
    look()
  })
