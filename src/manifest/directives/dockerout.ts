/** `dockerout <folder> <Dockerfile> <version>`: the output of a container build in `/out`, stored in an OS folder. */
import { pathProblem } from '../../core/layout.ts';
import { isOsId, OS_IDS, type OsId } from '../../core/os.ts';
import type { Word } from '../../core/diagnostic.ts';
import { eachRepeated, word, type DirectiveRequest, type Directive } from '../directive.ts';
import { nearest } from '../../core/nearest.ts';
import { quoted, type Find } from '../rules.ts';

export interface DockeroutRequest extends DirectiveRequest {
  readonly kind: 'dockerout';
  readonly destination: Word;
  readonly os: OsId;
  /** Path relative to the root of the repository or to the Manifest. */
  readonly dockerfile: Word;
  /** The value of the build argument. */
  readonly version: Word;
  /** The name of the build argument, if it is not VERSION. */
  readonly argument: string | undefined;
}

const BUILD_ARG = /^--build-arg=([A-Za-z_][A-Za-z0-9_]*)=/;
const VERSION = /^[A-Za-z0-9][A-Za-z0-9._+~:-]{0,127}$/;

function readDestination({ text, place }: Word, find: Find): OsId | undefined {
  if (isOsId(text)) return text;
  const near = nearest(text, OS_IDS);
  const known = `known: ${OS_IDS.join(', ')}`;
  const hint = near === undefined ? known : `did you mean "${near}"? ${known}`;
  find('dockerout/destination', place, `${quoted(text)} is not the folder of an operating system`, hint);
  return undefined;
}

function checkDockerfile({ text, place }: Word, find: Find): boolean {
  const problem = pathProblem(text);
  if (problem === undefined) return true;
  const hint = 'a path relative to the root of the repository or to the Manifest, without ".."';
  find('dockerout/dockerfile', place, `the path of the Dockerfile ${problem}`, hint);
  return false;
}

/** A version, or `--build-arg=NAME=VALUE` as in kURL's documentation. */
function readArgument(written: Word, find: Find): Pick<DockeroutRequest, 'version' | 'argument'> {
  const [option = '', name] = BUILD_ARG.exec(written.text) ?? [];
  if (name === undefined) return { version: written, argument: undefined };
  const { text, place } = written;
  const value = text.slice(option.length);
  const hint = `kURL's builder sets VERSION to the whole word; a version alone works with both`;
  find('dockerout/build-arg', place, `the build argument ${quoted(name)} is set`, hint);
  const length = Math.max(1, value.length);
  const version = { text: value, place: { ...place, column: place.column + place.length - value.length, length } };
  return { version, argument: name === 'VERSION' ? undefined : name };
}

function checkVersion({ text, place }: Word, find: Find): boolean {
  if (VERSION.test(text)) return true;
  find(
    'dockerout/version',
    place,
    `${quoted(text)} is not a valid version`,
    'letters, digits, ".", "_", "+", "~", "-"',
  );
  return false;
}

export const dockerout: Directive<DockeroutRequest> = {
  keyword: 'dockerout',
  kind: 'dockerout',
  usage: 'dockerout <OS folder> <Dockerfile> <version or --build-arg=NAME=VALUE>',
  about:
    'Builds the Dockerfile (a path relative to the root of the repository, or else to the Manifest) with the build argument ' +
    '`VERSION`, or with the named one, and runs the image; files in `/out` are kept. The build context is empty, ' +
    'unless the Dockerfile copies files: then it is the folder of the Dockerfile, without the files named in `.dockerignore`.',
  yields: '`<OS folder>/…`, flat',
  columns: { needed: 3 },
  parse(line, find) {
    const [destination, dockerfile] = [word(line, 0), word(line, 1)];
    const { version, argument } = readArgument(word(line, 2), find);
    const os = readDestination(destination, find);
    const valid = [checkDockerfile(dockerfile, find), checkVersion(version, find)].every(Boolean);
    if (os === undefined || !valid) return undefined;
    const { keyword, place } = line;
    return { kind: 'dockerout', keyword, place, destination, os, dockerfile, version, argument };
  },
  check(requests, find) {
    eachRepeated(
      requests,
      ({ os }) => os,
      ({ destination, os }, first) => {
        const message = `line ${first.place.line} also builds into ${os}; files with the same name are overwritten`;
        find('dockerout/duplicate', destination.place, message);
      },
    );
  },
  plan: (requests) =>
    requests.map(({ os, dockerfile, version, argument }) => ({
      kind: 'container-build',
      destination: os,
      dockerfile: dockerfile.text,
      version: version.text,
      argument,
    })),
};
