/** Progress on a terminal: one listr2 task for the whole command, the steps on their way below it with bars. */
import { Listr, ListrLogger, ProcessOutput } from 'listr2';
import { visible } from '../../core/diagnostic.ts';
import { CurlewError, redact } from '../../core/errors.ts';
import type { ProgressEvent, Report } from '../../core/events.ts';
import { formatBytes, formatSeconds } from './units.ts';

interface Step {
  readonly title: string;
  readonly bytes: number | undefined;
  done: number;
  /** The last line of a program that works for the step. */
  said?: string;
}

const MOST_LINES = 8;
const BAR = 20;
const REFRESH_MS = 100;

/** A bar of fixed width: `████████············  40 %`. */
export function progressBar(done: number, total: number): string {
  const share = total === 0 ? 1 : Math.min(1, Math.max(0, done / total));
  const filled = Math.round(share * BAR);
  return `${'█'.repeat(filled)}${'·'.repeat(BAR - filled)} ${String(Math.floor(share * 100)).padStart(3)} %`;
}

/** Counts events; what is shown is made of it now and then. Pure but for the clock that is passed in. */
export function createProgressModel(now: () => number): {
  readonly take: Report;
  readonly headline: () => string;
  readonly lines: (columns: number) => readonly string[];
} {
  const started = now();
  const active = new Map<string, Step>();
  const total = { steps: 0, finished: 0, bytes: 0, done: 0 };
  const take = (event: ProgressEvent): void => {
    if (event.type === 'step-started') {
      active.set(event.id, { title: event.title, bytes: event.bytes, done: 0 });
      total.steps += 1;
      total.bytes += event.bytes ?? 0;
    } else if (event.type === 'step-progress') {
      const step = active.get(event.id);
      if (step === undefined) return;
      if (step.bytes !== undefined) total.done += event.bytes - step.done;
      step.done = event.bytes;
    } else if (event.type === 'step-log') {
      const step = active.get(event.id);
      if (step !== undefined) step.said = event.text;
    } else if (event.type === 'step-done' || event.type === 'step-failed') {
      const step = active.get(event.id);
      if (step?.bytes !== undefined) total.done += Math.max(0, step.bytes - step.done);
      total.finished += 1;
      active.delete(event.id);
    }
  };
  const left = (): string => {
    const seconds = (now() - started) / 1000;
    if (seconds < 2 || total.done < 1 || total.done >= total.bytes) return '';
    return `, ${formatSeconds((seconds * (total.bytes - total.done)) / total.done)} left`;
  };
  return {
    take,
    headline: () => {
      const bytes = total.bytes === 0 ? '' : `, ${formatBytes(total.done)} of ${formatBytes(total.bytes)}`;
      return `${total.finished} of ${total.steps} done${bytes}${left()}`;
    },
    lines: (columns) => {
      const width = Math.max(10, columns - BAR - 26);
      const shown = [...active.values()].slice(0, MOST_LINES).map(({ title, bytes, done, said }) => {
        const name = visible(redact(title)).slice(0, width);
        if (said !== undefined) return visible(redact(`${title}: ${said}`)).slice(0, Math.max(10, columns - 4));
        return bytes === undefined ? name : `${name.padEnd(width)} ${progressBar(done, bytes)} ${formatBytes(bytes)}`;
      });
      return active.size > MOST_LINES ? [...shown, `and ${active.size - MOST_LINES} more`] : shown;
    },
  };
}

/** Starts the display; `stop` clears it and waits until the terminal is left clean. */
export function createTerminalProgress(stream: NodeJS.WriteStream): {
  readonly report: Report;
  readonly stop: () => Promise<void>;
} {
  const model = createProgressModel(Date.now);
  let finish: () => void = () => undefined;
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const notes: string[] = [];
  const list = new Listr(
    [
      {
        title: 'starting',
        task: async (_, task) => {
          const refresh = (): void => {
            task.title = model.headline();
            task.output = model.lines(stream.columns).join('\n');
          };
          const timer = setInterval(refresh, REFRESH_MS);
          await finished;
          clearInterval(timer);
        },
        rendererOptions: { outputBar: MOST_LINES + 1 },
      },
    ],
    {
      // Ctrl-C belongs to the command: listr2 would end the process before anything is cleaned up.
      registerSignalListeners: false,
      rendererOptions: {
        clearOutput: true,
        logger: new ListrLogger({ useIcons: true, processOutput: new ProcessOutput(stream, stream) }),
      },
    },
  );
  let running: Promise<unknown> | undefined;
  return {
    report: (event) => {
      if (event.type === 'note') {
        notes.push(visible(redact(event.level === 'warning' ? `warning: ${event.text}` : event.text)));
        return;
      }
      model.take(event);
      running ??= list.run();
      if (event.type === 'step-failed' && !(event.error instanceof CurlewError && event.error.code === 'CANCELLED')) {
        notes.push(`${visible(redact(event.id))}: failed`);
      }
    },
    stop: async () => {
      finish();
      await running;
      for (const note of notes.splice(0)) stream.write(`${note}\n`);
    },
  };
}
