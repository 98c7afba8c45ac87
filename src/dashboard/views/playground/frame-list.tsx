/** The frames of a player, with a filter, and a form for each frame that a client may send. */
import { useEffect, useRef, useState } from "preact/hooks"
import { texts } from "../../core/texts.ts"
import { Choice, Field } from "../../parts/form.tsx"
import { useExamples } from "./examples.ts"
import type { FrameLog } from "./frames.ts"

const { playground: own } = texts

const signs = { sent: "→", received: "←", note: "!" } as const
const classes = { sent: "sent", received: "", note: "problem" } as const

const Lines = ({
  filter,
  log,
  name
}: {
  readonly log: FrameLog
  readonly filter: string
  readonly name: string
}) => {
  const element = useRef<HTMLDivElement>(null)
  const shown = log.frames.value.filter(({ text }) => text.includes(filter))
  useEffect(() => {
    element.current?.scrollTo({ top: element.current.scrollHeight })
  }, [shown.length])
  return (
    <div class="frames" ref={element} tabIndex={0} role="region" aria-label={own.framesOf(name)}>
      {shown.length === 0 && <p>{own.noFrames}</p>}
      {shown.map(({ direction, id, text }) => (
        <p key={id} class={classes[direction]}>
          <span aria-hidden="true">{signs[direction]} </span>
          <span class="hidden-text">{own.directions[direction]} </span>
          {text}
        </p>
      ))}
    </div>
  )
}

/** Form for any frame, with an example of each type to change. */
const AnyFrame = ({ log }: { readonly log: FrameLog }) => {
  const examples = useExamples()
  const [type, setType] = useState("ping")
  const [frame, setFrame] = useState(`{"t":"ping"}`)
  const send = () => {
    if (!log.send(frame)) log.add("note", own.notConnected)
  }
  const choose = (chosen: string) => {
    setType(chosen)
    setFrame(examples.get(chosen) ?? frame)
  }
  const types = examples.size === 0 ? [type] : Array.from(examples.keys())
  return (
    <div class="body stack">
      <div class="row frame-tools">
        <Choice
          label={own.frameType}
          value={type}
          options={types.map((it) => [it, it])}
          onChoose={choose}
        />
        <button type="button" class="button" onClick={send}>
          {own.sendFrame}
        </button>
      </div>
      <Field label={own.anyFrame} value={frame} onValue={setFrame} autocomplete="off" />
    </div>
  )
}

export const Frames = ({ log, name }: { readonly log: FrameLog; readonly name: string }) => {
  const [filter, setFilter] = useState("")
  return (
    <>
      <div class="body row frame-tools">
        <Field label={own.filter} value={filter} onValue={setFilter} autocomplete="off" />
        <button
          type="button"
          class="button"
          aria-pressed={log.paused.value}
          onClick={() => {
            log.paused.value = !log.paused.value
          }}
        >
          {log.paused.value ? own.resume : own.pause}
        </button>
        <button type="button" class="button" onClick={() => log.clear()}>
          {own.clear}
        </button>
      </div>
      <Lines log={log} filter={filter} name={name} />
      <AnyFrame log={log} />
    </>
  )
}
