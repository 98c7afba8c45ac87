/** The states of a view: loading, failed with its cause, empty with what to do, and the data. */
import type { ComponentChildren } from "preact"
import type { ApiError } from "../core/api.ts"
import { texts } from "../core/texts.ts"
import { Button } from "./basics.tsx"
import type { Load } from "./load.ts"

/** Error message with its reason, the request id and the remedy. */
export const Failure = ({
  error,
  retry
}: {
  readonly error: ApiError
  readonly retry?: (() => void) | undefined
}) => (
  <div class="error" role="alert">
    <p class="head">{texts.errors.title}</p>
    <p>{error.message}</p>
    {error.issues.length > 0 && (
      <ul>
        {error.issues.map(({ message, path }) => (
          <li key={path + message}>
            <code>{path}</code> {message}
          </li>
        ))}
      </ul>
    )}
    <p class="soft small">
      {texts.errors.code} <code>{error.code}</code>
      {error.requestId !== undefined && (
        <>
          , {texts.errors.request} <code>{error.requestId}</code>
        </>
      )}
    </p>
    {retry !== undefined && (
      <Button kind="small" onClick={retry}>
        {texts.errors.retry}
      </Button>
    )}
  </div>
)

export const Skeleton = () => (
  <div class="skeleton" role="status">
    <span class="hidden-text">{texts.loading}</span>
    <i />
    <i />
    <i />
    <i />
  </div>
)

/** Shows data when it is there; until then why it is not. */
export const Loaded = <T,>({
  children,
  of
}: {
  readonly of: Load<T>
  readonly children: (data: T) => ComponentChildren
}) => {
  const { data, error, refresh } = of
  if (data !== undefined) {
    return (
      <>
        {error !== undefined && (
          <p class="notice amber" role="status">
            {texts.stale} {error.message}
          </p>
        )}
        {children(data)}
      </>
    )
  }
  return error === undefined ? <Skeleton /> : <Failure error={error} retry={refresh} />
}

export const Empty = ({
  children,
  text,
  title
}: {
  readonly title: string
  readonly text: ComponentChildren
  readonly children?: ComponentChildren
}) => (
  <div class="empty">
    <p class="head">{title}</p>
    <p>{text}</p>
    {children}
  </div>
)

/** Mark that shows whether the data of a polled view is current. */
export const LiveMark = ({ of: { data, error } }: { readonly of: Load<unknown> }) => {
  const state = error !== undefined ? "stale" : data === undefined ? "waiting" : "live"
  return (
    <span class="live-mark">
      <i class={`dot ${state}`} /> {texts.liveness[state]}
    </span>
  )
}
