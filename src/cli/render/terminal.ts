/** Progress on a terminal: a headline for the whole command, the steps on their way below it with bars. */
import { Listr, ListrLogger, ProcessOutput } from 'listr2';
import type { ProgressEvent, Report } from '../../core/events.ts';
import { createPlainLines, harmless } from './plain.ts';
import { formatBytes, formatSeconds } from './units.ts';

export interface Progress {
  readonly report: Report;
  /** Takes everything moving off the screen for as long as `work` has it to itself. */
  readonly around: <Result>(work: () => Promise<Result>) => Promise<Result>;
  /** Takes everything moving off the screen and waits for it. May be called twice. */
  readonly stop: () => Promise<void>;
}

interface Step {
  readonly title: string;
  readonly since: number;
  bytes: number | undefined;
  done: number;
  said?: string;
}

const MOST_LINES = 8;
const BAR = 20;
const REFRESH_MS = 100;
/** What listr2 puts before each line, and leaves free behind it. */
const MARGIN = 4;
/** `12.3 MB of 40.5 MB` */
const SIZES = 18;
const NARROW = 64;
/** The speed is that of the last seconds: what a cache gave at once says nothing about the rest. */
const SPEED_MS = 10_000;
const SPEED_KNOWN_MS = 2000;
/** From here on, a step without a bar tells how long it has been at work. */
const PATIENCE_S = 3;

/** A bar of fixed width: `████████············  40 %`. */
export function progressBar(done: number, total: number): string {
  const share = shareOf(done, total);
  const filled = Math.round(share * BAR);
  return `${'█'.repeat(filled)}${'·'.repeat(BAR - filled)} ${percent(share)}`;
}

function shareOf(done: number, total: number): number {
  return total === 0 ? 1 : Math.min(1, Math.max(0, done / total));
}

function percent(share: number): string {
  return `${String(Math.floor(share * 100)).padStart(3)} %`;
}

function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`;
}

/** Bytes a second over the last samples, once they say something. */
function createSpeed(now: () => number): (bytes: number) => number | undefined {
  const samples: { readonly at: number; readonly bytes: number }[] = [];
  return (bytes) => {
    const at = now();
    samples.push({ at, bytes });
    while (samples.length > 2 && at - (samples[0]?.at ?? at) > SPEED_MS) samples.shift();
    const [first] = samples;
    if (first === undefined || at - first.at < SPEED_KNOWN_MS || bytes <= first.bytes) return undefined;
    return ((bytes - first.bytes) * 1000) / (at - first.at);
  };
}

/** Counts events; what is shown is made of it now and then. Pure but for the clock that is passed in. */
export function createProgressModel(now: () => number): {
  readonly take: Report;
  readonly headline: () => string;
  readonly lines: (columns: number) => readonly string[];
} {
  const active = new Map<string, Step>();
  const over = { steps: 0, bytes: 0 };
  const speedOf = createSpeed(now);
  const take = (event: ProgressEvent): void => {
    if (event.type === 'note') return;
    if (event.type === 'step-started') {
      active.set(event.id, { title: event.title, since: now(), bytes: event.bytes, done: 0 });
      return;
    }
    const step = active.get(event.id);
    if (step === undefined) return;
    if (event.type === 'step-progress') {
      step.done = event.bytes;
      step.bytes = event.total ?? step.bytes;
    } else if (event.type === 'step-log') {
      step.said = event.text;
    } else {
      over.steps += 1;
      over.bytes += step.bytes ?? 0;
      active.delete(event.id);
    }
  };
  const transfer = (): string => {
    const sized = [...active.values()].filter(({ bytes }) => bytes !== undefined);
    const total = sized.reduce((sum, { bytes = 0 }) => sum + bytes, over.bytes);
    if (sized.length === 0 || total === 0) return '';
    const done = sized.reduce((sum, { bytes = 0, done: some }) => sum + Math.min(bytes, some), over.bytes);
    const speed = speedOf(done);
    const sum = `, ${formatBytes(done)} of ${formatBytes(total)}`;
    if (speed === undefined || done >= total) return sum;
    return `${sum}, ${formatBytes(Math.round(speed))}/s, ${formatSeconds((total - done) / speed)} left`;
  };
  return {
    take,
    headline: () => `${over.steps} of ${over.steps + active.size} done${transfer()}`,
    lines: (columns) => {
      const shown = [...active.values()].slice(0, MOST_LINES);
      const space = columns - MARGIN;
      const wanted = Math.max(0, ...shown.map(({ title }) => harmless(title).length));
      const lines = shown.map((step) => stepLine(step, { space, wanted, seconds: (now() - step.since) / 1000 }));
      return active.size > MOST_LINES ? [...lines, `and ${active.size - MOST_LINES} more`] : lines;
    },
  };
}

/** One step in `space` columns; names take the width `wanted`, if there is so much. */
function stepLine(
  { title, bytes, done, said }: Step,
  { space, wanted, seconds }: { readonly space: number; readonly wanted: number; readonly seconds: number },
): string {
  const name = harmless(title);
  if (said !== undefined) return cut(`${name}: ${harmless(said)}`, space);
  if (bytes === undefined) {
    const facts = [
      ...(done === 0 ? [] : [formatBytes(done)]),
      ...(seconds < PATIENCE_S ? [] : [formatSeconds(seconds)]),
    ];
    return cut([name.padEnd(Math.min(wanted, space - 10)), ...facts].join('  ').trimEnd(), space);
  }
  const sizes = `${formatBytes(Math.min(done, bytes)).padStart(7)} of ${formatBytes(bytes)}`.padEnd(SIZES);
  const bar = space < NARROW ? percent(shareOf(done, bytes)) : `${progressBar(done, bytes)} ${sizes}`;
  const width = Math.min(wanted, Math.max(8, space - bar.length - 2));
  return `${cut(name, width).padEnd(width)}  ${bar}`.trimEnd();
}

/** A display that moves until it is told to finish. */
function display(stream: NodeJS.WriteStream, text: () => string): () => Promise<void> {
  let finish: () => void = () => undefined;
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const list = new Listr(
    [
      {
        title: 'starting',
        task: async (_, task) => {
          const timer = setInterval(() => {
            task.title = text();
          }, REFRESH_MS);
          await finished;
          clearInterval(timer);
        },
      },
    ],
    {
      // Ctrl-C belongs to the command: listr2 would end the process before anything is cleaned up.
      registerSignalListeners: false,
      rendererOptions: {
        clearOutput: true,
        formatOutput: 'truncate',
        logger: new ListrLogger({ useIcons: true, processOutput: new ProcessOutput(stream, stream) }),
      },
    },
  );
  const running = list.run();
  return async () => {
    finish();
    await running;
  };
}

/** Starts the display; `stop` clears it and waits until the terminal is left clean. */
export function createTerminalProgress(stream: NodeJS.WriteStream): Progress {
  const model = createProgressModel(Date.now);
  const plainLine = createPlainLines(Date.now);
  const notes: string[] = [];
  const text = (): string => [model.headline(), ...model.lines(stream.columns)].join('\n');
  let shown: (() => Promise<void>) | undefined;
  let isHidden = false;
  const hide = async (): Promise<void> => {
    isHidden = true;
    await shown?.();
    shown = undefined;
    for (const note of notes.splice(0)) stream.write(`${note}\n`);
  };
  return {
    report: (event) => {
      const line = plainLine(event);
      if (line !== undefined && (event.type === 'note' || event.type === 'step-failed')) notes.push(line);
      if (event.type === 'note') return;
      model.take(event);
      if (!isHidden) shown ??= display(stream, text);
    },
    around: async (work) => {
      await hide();
      try {
        return await work();
      } finally {
        isHidden = false;
        shown ??= display(stream, text);
      }
    },
    stop: hide,
  };
}
