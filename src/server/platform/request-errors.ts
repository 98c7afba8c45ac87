/**
 * Last line of defence: an error that nobody has handled ends the request in whose course it occurred, and
 * not the process, which serves others. Each place that can fail has a handler of its own; what arrives here
 * is a fault of the service, and is logged as one.
 *
 * Two kinds of errors still end the process: those outside of any request, after which a part of the service
 * may be missing, and failed assertions, which say that its memory is not to be trusted.
 */
import { AsyncLocalStorage } from "node:async_hooks"
import type { IncomingMessage } from "node:http"

/** A request under way. */
export interface RequestCourse {
  readonly requestId: string
  /** Ends the request: its client gets an error, or a cut connection. */
  readonly end: () => void
}

const courses = new AsyncLocalStorage<RequestCourse | undefined>()

/** Runs work in the course of a request. What the work starts belongs to the request, too. */
export const inCourse = (course: RequestCourse, work: () => void): void =>
  courses.run(course, () => {
    try {
      work()
    } catch (error) {
      // Thrown on, it would leave the course, and break the parser that has called.
      queueMicrotask(() => {
        throw error
      })
    }
  })

/** Form of the request ids of a proxy or client that are safe to log. */
const requestIdForm = /^[A-Za-z0-9._:-]{1,64}$/

/** Returns the request id that a proxy or client has sent, if it is safe to log. */
export const givenRequestId = ({
  headers
}: Pick<IncomingMessage, "headers">): string | undefined => {
  const given = headers["x-request-id"]
  return typeof given === "string" && requestIdForm.test(given) ? given : undefined
}

const assertions = new Set<unknown>(["ERR_ASSERTION", "ERR_INTERNAL_ASSERTION"])

const isAssertion = (error: unknown): boolean =>
  error instanceof Error && "code" in error && assertions.has(error.code)

export interface ErrorHandlers {
  /** Called for an error that has ended its request. */
  readonly onRequestError: (error: unknown, course: RequestCourse) => void
  /** Called for an error that ends the process, before its end. */
  readonly onFatal: (error: unknown) => void
}

/** Handles the errors that nobody has handled; returns a function that ends the watch. */
export const watchErrors = ({ onFatal, onRequestError }: ErrorHandlers): (() => void) => {
  const handle = (error: unknown): void => {
    const course = courses.getStore()
    // Node leaves the course of a failed callback in force for those that follow.
    courses.enterWith(undefined)
    if (course === undefined || isAssertion(error)) {
      onFatal(error)
      return process.exit(1)
    }
    onRequestError(error, course)
    course.end()
  }
  process.on("uncaughtException", handle)
  return () => void process.off("uncaughtException", handle)
}
