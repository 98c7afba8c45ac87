/**
 * A window for a provider's pages, and what comes back from it: a message of the page that it returns
 * to, which is of this page's origin (see `return.ts`). Providers may cut the window off from its opener
 * (Cross-Origin-Opener-Policy): it then looks closed while it is not, and answers over a channel.
 */
import { Effect, Option, Schedule, Schema } from "effect"
import { PopupBlocked, PopupClosed, TimedOut } from "./errors.ts"
import { channelName, popupParameter, type ProviderResponse } from "./oauth-callback.ts"

export interface Popup {
  /** The address to return to, which tells the page there of its popup. */
  readonly returnTo: string
  /** Shows the provider, and waits for its answer. */
  readonly show: (url: string) => Effect.Effect<ProviderResponse, PopupClosed | TimedOut>
  readonly close: () => void
}

/** As long as the service waits for a provider. */
const signInTimeout = "10 minutes"

const features = "popup,width=500,height=700"

/** Opens the window; at once, since browsers let it open for a click only. */
export const openPopup = (id: string, redirectUrl: URL): Popup => {
  const opened = window.open("", "_blank", features)
  if (opened === null) {
    throw new PopupBlocked({ message: "The browser did not let the sign-in window open." })
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
          Effect.fail(new TimedOut({ message: `Not signed in within ${signInTimeout}.` }))
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
 * The window is closed, and the player is back here: while it is elsewhere, the window may be one that
 * was cut off. The answer of a window that closes itself may still be on its way.
 */
const awaitClose = (opened: Window): Effect.Effect<never, PopupClosed> =>
  Effect.sync(() => opened.closed && document.hasFocus()).pipe(
    Effect.repeat({ until: (gone) => gone, schedule: Schedule.spaced("500 millis") }),
    Effect.andThen(Effect.sleep("1 second")),
    Effect.andThen(Effect.fail(new PopupClosed({ message: "The sign-in window was closed." })))
  )
