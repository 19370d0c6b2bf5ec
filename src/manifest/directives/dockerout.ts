/** `dockerout <folder> <Dockerfile> <version>`: what a container build leaves in `/out`, kept in an OS folder. */
import { pathProblem } from '../../core/layout.ts';
import { isOsId, OS_IDS, type OsId } from '../../core/os.ts';
import type { Word } from '../../core/diagnostic.ts';
import { eachRepeated, word, type Asked, type Directive } from '../directive.ts';
import { nearest } from '../../core/nearest.ts';
import { finding, quoted, type Find } from '../rules.ts';

export interface DockeroutRequest extends Asked {
  readonly kind: 'dockerout';
  readonly destination: Word;
  readonly os: OsId;
  /** Path from the root of the repository, or from the Manifest. */
  readonly dockerfile: Word;
  readonly version: Word;
}

const VERSION = /^[A-Za-z0-9][A-Za-z0-9._+~:-]{0,127}$/;

function readDestination({ text, place }: Word, find: Find): OsId | undefined {
  if (isOsId(text)) return text;
  const near = nearest(text, OS_IDS);
  const known = `known: ${OS_IDS.join(', ')}`;
  const hint = near === undefined ? known : `did you mean "${near}"? ${known}`;
  find(finding('dockerout/destination', place, `${quoted(text)} is not the folder of an operating system`, hint));
  return undefined;
}

function checkDockerfile({ text, place }: Word, find: Find): boolean {
  const problem = pathProblem(text);
  if (problem === undefined) return true;
  const hint = 'a path from the root of the repository or from the Manifest, without ".."';
  find(finding('dockerout/dockerfile', place, `the path of the Dockerfile ${problem}`, hint));
  return false;
}

function checkVersion({ text, place }: Word, find: Find): boolean {
  if (VERSION.test(text)) return true;
  find(
    finding(
      'dockerout/version',
      place,
      `${quoted(text)} cannot be a version`,
      'letters, digits, ".", "_", "+", "~", "-"',
    ),
  );
  return false;
}

export const dockerout: Directive<DockeroutRequest> = {
  keyword: 'dockerout',
  kind: 'dockerout',
  usage: 'dockerout <OS folder> <Dockerfile> <version>',
  about:
    'Builds the Dockerfile (a path from the root of the repository, or else from the Manifest) with the build argument ' +
    '`VERSION` and runs it; what it writes to `/out` is kept. It sees no other files, unless it copies some: then its own ' +
    'folder, without what `.dockerignore` names.',
  yields: '`<OS folder>/…`, flat',
  columns: { needed: 3, optional: [] },
  parse(line, find) {
    const [destination, dockerfile, version] = [word(line, 0), word(line, 1), word(line, 2)];
    const os = readDestination(destination, find);
    const valid = [checkDockerfile(dockerfile, find), checkVersion(version, find)].every(Boolean);
    if (os === undefined || !valid) return undefined;
    const { keyword, place } = line;
    return { kind: 'dockerout', keyword, place, destination, os, dockerfile, version };
  },
  check(requests, find) {
    eachRepeated(
      requests,
      ({ os }) => os,
      ({ destination, os }, first) => {
        const message = `line ${first.place.line} builds into ${os} too; files of the same name are overwritten`;
        find(finding('dockerout/duplicate', destination.place, message));
      },
    );
  },
  plan: (requests) =>
    requests.map(({ os, dockerfile, version }) => ({
      kind: 'container-build',
      destination: os,
      dockerfile: dockerfile.text,
      version: version.text,
    })),
};
