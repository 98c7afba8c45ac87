/** The frames of a player, with a filter, and a form for each frame that a client may send. */
import { useEffect, useRef, useState } from "preact/hooks"
import { texts } from "../../core/texts.ts"
import { Button } from "../../parts/basics.tsx"
import { Choice, Field, TextField } from "../../parts/form.tsx"
import { Tree } from "../../parts/tree.tsx"
import { useExamples } from "./examples.ts"
import type { Frame, FrameLog } from "./frames.ts"

const { playground: own } = texts

const signs = { sent: "→", received: "←", note: "!" } as const
const classes = { sent: "sent", received: "", note: "problem" } as const

/** Names of the players that are known here, by id. */
type Names = ReadonlyMap<string, string>

const valueMaxCharacters = 48

/** A value in a line: a player's name instead of the id, long texts cut, and the size of what has many parts. */
const shortOf = (value: unknown, names: Names): string => {
  const text = typeof value === "string" ? (names.get(value) ?? value) : JSON.stringify(value)
  if (text.length <= valueMaxCharacters) return text
  if (Array.isArray(value)) return `[${value.length}]`
  return typeof value === "object" && value !== null
    ? `{${Object.keys(value).length}}`
    : `${text.slice(0, valueMaxCharacters)}…`
}

const Sign = ({ direction }: Pick<Frame, "direction">) => (
  <>
    <span aria-hidden="true">{signs[direction]} </span>
    <span class="hidden-text">{own.directions[direction]} </span>
  </>
)

/** A frame in a line: its type and fields. Opened, the whole of it. */
const Line = ({ frame, names }: { readonly frame: Frame; readonly names: Names }) => {
  const [open, setOpen] = useState(false)
  const { direction, parsed, text } = frame
  if (parsed === undefined) {
    return (
      <p class={classes[direction]}>
        <Sign direction={direction} />
        {text}
      </p>
    )
  }
  const { fields, type } = parsed
  return (
    <details
      class={classes[direction]}
      onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
    >
      <summary>
        <Sign direction={direction} />
        <strong>{type}</strong>
        {Object.entries(fields).map(([key, value]) => (
          <span key={key}>
            {" "}
            <span class="key">{key}</span> {shortOf(value, names)}
          </span>
        ))}
      </summary>
      {open && <Tree value={fields} before={fields} />}
    </details>
  )
}

const Lines = ({
  filter,
  log,
  name,
  names
}: {
  readonly log: FrameLog
  readonly filter: string
  readonly name: string
  readonly names: Names
}) => {
  const element = useRef<HTMLDivElement>(null)
  const shown = log.frames.value.filter(({ text }) => text.includes(filter))
  useEffect(() => {
    element.current?.scrollTo({ top: element.current.scrollHeight })
  }, [shown.length])
  return (
    <div class="frames" ref={element} tabIndex={0} role="region" aria-label={own.framesOf(name)}>
      {shown.length === 0 && <p>{own.noFrames}</p>}
      {shown.map((frame) => (
        <Line key={frame.id} frame={frame} names={names} />
      ))}
    </div>
  )
}

/** Form for any frame, with an example of each type to change. */
const AnyFrame = ({ log }: { readonly log: FrameLog }) => {
  const examples = useExamples()
  const [type, setType] = useState("ping")
  const [frame, setFrame] = useState(`{ "t": "ping" }`)
  const send = () => {
    if (!log.send(frame)) log.add("note", own.notConnected)
  }
  const choose = (chosen: string) => {
    setType(chosen)
    setFrame(examples.get(chosen) ?? frame)
  }
  const types = examples.size === 0 ? [type] : Array.from(examples.keys())
  return (
    <details class="body">
      <summary class="small">{own.anyFrameTitle}</summary>
      <div class="stack">
        <div class="row frame-tools">
          <Choice
            label={own.frameType}
            value={type}
            options={types.map((it) => [it, it])}
            onChoose={choose}
          />
          <Button onClick={send}>{own.sendFrame}</Button>
        </div>
        <TextField
          mono
          label={own.anyFrame}
          rows={frame.split("\n").length}
          value={frame}
          onInput={({ currentTarget }) => setFrame(currentTarget.value)}
        />
      </div>
    </details>
  )
}

export const Frames = ({
  log,
  name,
  names
}: {
  readonly log: FrameLog
  readonly name: string
  readonly names: Names
}) => {
  const [filter, setFilter] = useState("")
  return (
    <>
      <div class="body row frame-tools">
        <Field label={own.filter} value={filter} onValue={setFilter} autocomplete="off" />
        <Button
          pressed={log.paused.value}
          onClick={() => {
            log.paused.value = !log.paused.value
          }}
        >
          {log.paused.value ? own.resume : own.pause}
        </Button>
        <Button onClick={() => log.clear()}>{own.clear}</Button>
      </div>
      <Lines log={log} filter={filter} name={name} names={names} />
      <AnyFrame log={log} />
    </>
  )
}
