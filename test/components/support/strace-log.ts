/** What a program did to files, out of the log that `strace -f -y` has made of it. */

export type FileAct =
  | { readonly kind: 'create' | 'truncate' | 'sync' | 'folder' | 'remove'; readonly path: string }
  | { readonly kind: 'write'; readonly path: string; readonly data: Buffer; readonly at: number | undefined }
  | { readonly kind: 'rename' | 'link'; readonly path: string; readonly to: string };

const STRACED =
  'openat,open,creat,write,pwrite64,fsync,fdatasync,rename,renameat,renameat2,mkdir,mkdirat,unlink,unlinkat,rmdir,link,linkat,ftruncate';

/** Words in front of a command, so that its log is written to this file. */
export function straced(log: string): readonly string[] {
  return ['strace', '-f', '-qq', '-y', '-s', '4000000', '-o', log, '-e', `trace=${STRACED}`];
}

/** Acts on `root` and below, in the order in which they came to an end. Those that failed are left out. */
export function readStrace(text: string, root: string): readonly FileAct[] {
  const begun = new Map<string, string>();
  const acts: FileAct[] = [];
  for (const line of text.split('\n')) {
    const [, pid = '', rest = ''] = /^(\d+) +(.*)$/.exec(line) ?? [];
    const unfinished = /^(.*) <unfinished \.\.\.>$/.exec(rest)?.[1];
    if (unfinished !== undefined) {
      begun.set(pid, unfinished);
      continue;
    }
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest)?.[1];
    const call = resumed === undefined ? rest : `${begun.get(pid) ?? ''}${resumed}`;
    const act = parseCall(call);
    if (act !== undefined && `${act.path}/`.startsWith(`${root}/`)) acts.push(act);
  }
  return acts;
}

function parseCall(call: string): FileAct | undefined {
  const [, name, words = '', result = ''] = /^(\w+)\((.*)\) += (-?\d+|0x[0-9a-f]+)/s.exec(call) ?? [];
  if (name === undefined || result.startsWith('-')) return undefined;
  const texts = [...words.matchAll(/"((?:[^"\\]|\\.)*)"/gs)].map(([, text = '']) => unescape(text));
  const path = texts[0]?.toString('utf8') ?? '';
  const descriptor = /^\d+<([^>]*)>/.exec(words)?.[1] ?? '';
  switch (name) {
    case 'openat':
    case 'open':
      if (words.includes('O_TRUNC')) return { kind: 'truncate', path };
      return words.includes('O_CREAT') ? { kind: 'create', path } : undefined;
    case 'write':
      return { kind: 'write', path: descriptor, data: texts[0] ?? Buffer.alloc(0), at: undefined };
    case 'pwrite64':
      return {
        kind: 'write',
        path: descriptor,
        data: texts[0] ?? Buffer.alloc(0),
        at: Number(/, (\d+)$/.exec(words)?.[1]),
      };
    case 'fsync':
    case 'fdatasync':
      return { kind: 'sync', path: descriptor };
    case 'mkdir':
    case 'mkdirat':
      return { kind: 'folder', path };
    case 'unlink':
    case 'unlinkat':
    case 'rmdir':
      return { kind: 'remove', path };
    case 'rename':
    case 'renameat':
    case 'renameat2':
      return { kind: 'rename', path, to: texts[1]?.toString('utf8') ?? '' };
    case 'link':
    case 'linkat':
      return { kind: 'link', path, to: texts[1]?.toString('utf8') ?? '' };
    default:
      return undefined;
  }
}

const LETTERS: Readonly<Record<string, number>> = { n: 10, t: 9, r: 13, v: 11, f: 12, a: 7, b: 8 };

/** strace writes bytes as C does: \n, \", \\ and octal numbers of up to three digits. */
function unescape(text: string): Buffer {
  const bytes: number[] = [];
  for (const [piece] of text.matchAll(/\\[0-7]{1,3}|\\.|[^\\]/gs)) {
    if (piece.length === 1) bytes.push(...Buffer.from(piece));
    else if (/^\\[0-7]/.test(piece)) bytes.push(Number.parseInt(piece.slice(1), 8));
    else bytes.push(LETTERS[piece.slice(1)] ?? piece.charCodeAt(1));
  }
  return Buffer.from(bytes);
}
