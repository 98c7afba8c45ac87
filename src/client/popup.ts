/**
 * A popup for a provider's pages. Its callback page, on this page's origin, sends the response as a
 * message (see `oauth-callback.ts`). Providers may cut the popup off from its opener
 * (Cross-Origin-Opener-Policy). It then looks closed although it is open, and the response comes over a
 * broadcast channel.
 */
import { Effect, Option, Schedule, Schema } from "effect"
import { PopupBlocked, PopupClosed, TimedOut } from "./errors.ts"
import { channelName, popupParameter, type ProviderResponse } from "./oauth-callback.ts"

export interface Popup {
  /** The callback URL, with the popup's id. */
  readonly returnTo: string
  /** Shows the provider's page and waits for its response. */
  readonly show: (url: string) => Effect.Effect<ProviderResponse, PopupClosed | TimedOut>
  readonly close: () => void
}

/** The service waits as long for a provider. */
const signInTimeout = "10 minutes"

const features = "popup,width=500,height=700"

/** Opens the popup. Call it synchronously in a click handler: browsers block it otherwise. */
export const openPopup = (id: string, redirectUrl: URL): Popup => {
  const opened = window.open("", "_blank", features)
  if (opened === null) {
    throw new PopupBlocked({ message: "The browser blocked the sign-in popup." })
  }
  const url = new URL(redirectUrl)
  url.searchParams.set(popupParameter, id)
  const show = (provider: string) =>
    Effect.suspend(() => {
      opened.location.replace(provider)
      return Effect.raceFirst(awaitResponse(id), awaitClose(opened))
    }).pipe(
      Effect.timeoutOrElse({
        duration: signInTimeout,
        orElse: () =>
          Effect.fail(
            new TimedOut({ message: `The sign-in was not completed within ${signInTimeout}.` })
          )
      })
    )
  return { returnTo: url.href, show, close: () => opened.close() }
}

const awaitResponse = (id: string): Effect.Effect<ProviderResponse> => {
  const read = Schema.decodeUnknownOption(
    Schema.Struct({
      popup: Schema.Literal(id),
      code: Schema.NullOr(Schema.String),
      error: Schema.NullOr(Schema.String)
    })
  )
  return Effect.callback<ProviderResponse>((resume) => {
    const channel = new BroadcastChannel(channelName(id))
    const onMessage = ({ data, origin }: MessageEvent<unknown>) => {
      const answer = read(data)
      if (origin === location.origin && Option.isSome(answer)) {
        resume(Effect.succeed(answer.value))
      }
    }
    window.addEventListener("message", onMessage)
    channel.addEventListener("message", onMessage)
    return Effect.sync(() => {
      window.removeEventListener("message", onMessage)
      channel.close()
    })
  })
}

/**
 * Fails when the popup is closed and this page has the focus. Without the focus, the popup may only
 * look closed. Waits one more second, because the response of a popup that closes itself may still
 * arrive.
 */
const awaitClose = (opened: Window): Effect.Effect<never, PopupClosed> =>
  Effect.sync(() => opened.closed && document.hasFocus()).pipe(
    Effect.repeat({ until: (gone) => gone, schedule: Schedule.spaced("500 millis") }),
    Effect.andThen(Effect.sleep("1 second")),
    Effect.andThen(
      Effect.fail(new PopupClosed({ message: "The player closed the sign-in popup." }))
    )
  )
