/** Ways to get a set of images from a registry into one archive, each as a line of bash. */
import { execa } from 'execa';
import { join } from 'node:path';
import { oracle, ROOT } from '../components/support/programs.ts';
import { SET, storedBlob } from './image-set.ts';

export interface Way {
  readonly name: string;
  readonly line: string;
  readonly values: readonly string[];
  /** Path of what it makes, for its size; undefined when that says nothing. */
  readonly output: string | undefined;
  /** Before each run, not timed. */
  readonly prepare: () => Promise<void>;
}

export interface Place {
  /** Registry of the set. */
  readonly host: string;
  /** Folder of that registry. */
  readonly storage: string;
  /** Blobs and the repositories that have them. */
  readonly blobs: ReadonlyMap<string, string>;
  /** Folder that a run may fill; emptied before each. */
  readonly work: string;
}

export const CURLEW: string = join(ROOT, 'dist/cli/main.js');

/** The host name that Manifests of the benchmark use; a mirror leads to the registry on loopback. */
export const BENCH_HOST = 'bench.example';

async function emptied(folder: string): Promise<void> {
  await execa('bash', ['-c', 'rm -rf "$1" && mkdir -p "$1"', 'bash', folder]);
}

/** `work` is `$1`, the registry's host `$2`, repositories from `$3` on. */
function imageWay(name: string, line: string, output: string, { work, host }: Place): Way {
  return {
    name,
    line,
    values: [work, host, ...SET],
    output: join(work, output),
    prepare: async () => emptied(work),
  };
}

const CRANE = oracle('crane');

const SKOPEO = `for image in "\${@:3}"; do
  skopeo --insecure-policy copy -q --src-tls-verify=false "docker://$2/$image:1" "oci:$1/layout:$image"
done
`;

const CRANE_REFERENCES = `references=()
for image in "\${@:3}"; do references+=("$2/$image:1"); done
`;

export function otherWays(place: Place): readonly Way[] {
  const { host, storage, blobs, work } = place;
  const files = [...blobs.keys()].map((digest) => storedBlob(storage, digest));
  const urls = [...blobs].map(([digest, repository]) => `http://${host}/v2/${repository}/blobs/${digest}`);
  return [
    {
      name: 'cat of the blobs',
      line: 'cat "${@:2}" >"$1/all"',
      values: [work, ...files],
      output: join(work, 'all'),
      prepare: async () => emptied(work),
    },
    {
      name: 'curl of the blobs',
      line: 'curl -sfL "${@:2}" >"$1/all"',
      values: [work, ...urls],
      output: join(work, 'all'),
      prepare: async () => emptied(work),
    },
    imageWay(
      'crane, docker tarball',
      `${CRANE_REFERENCES}${CRANE} pull --insecure "\${references[@]}" "$1/out.tar"`,
      'out.tar',
      place,
    ),
    imageWay(
      'crane, OCI layout, tar',
      `${CRANE_REFERENCES}${CRANE} pull --insecure --format=oci "\${references[@]}" "$1/layout"
tar -C "$1" -cf "$1/out.tar" layout`,
      'out.tar',
      place,
    ),
    // Ours is on disk when it ends; this is what that costs crane.
    imageWay(
      'crane, OCI layout, tar, sync',
      `${CRANE_REFERENCES}${CRANE} pull --insecure --format=oci "\${references[@]}" "$1/layout"
tar -C "$1" -cf "$1/out.tar" layout; sync "$1/out.tar"`,
      'out.tar',
      place,
    ),
    imageWay('skopeo, OCI layout, tar', `${SKOPEO}tar -C "$1" -cf "$1/out.tar" layout`, 'out.tar', place),
    imageWay(
      'skopeo, OCI layout, tar, gzip -1',
      `${SKOPEO}tar -C "$1" -cf - layout | gzip -1 >"$1/out.tar.gz"`,
      'out.tar.gz',
      place,
    ),
  ];
}

/** kURL's: pull, save and gzip every image, then tar and gzip of the whole. `docker` is the engine's socket. */
export function kurlWay(place: Place, docker: string): Way {
  const { work, host } = place;
  const line = `mkdir -p "$1/addon/images"
for image in "\${@:4}"; do
  /usr/bin/docker -H "unix://$3" pull -q "$2/$image:1" >/dev/null
  /usr/bin/docker -H "unix://$3" save "$2/$image:1" | gzip >"$1/addon/images/\${image##*/}.tar.gz"
done
tar -C "$1" -cf - addon | gzip >"$1/out.tar.gz"`;
  return {
    name: "kURL's: docker pull, save, gzip, tar, gzip",
    line,
    values: [work, host, docker, ...SET],
    output: join(work, 'out.tar.gz'),
    prepare: async () => emptied(work),
  };
}

/** Ours. `tree` holds `addons/`; `out` receives packages; nothing is kept from an earlier run unless `warm`. */
export function ourWay(place: Place, tree: string, addons: readonly string[], name: string, warm: boolean): Way {
  const { work, host } = place;
  const kept = warm ? join(tree, '.kept') : work;
  return {
    name,
    line: `cd "$1"; XDG_CACHE_HOME="$2/cache" node "$3" build "\${@:5}" --quiet --out "$2/out" \
--registry-mirror "${BENCH_HOST}=$4" >/dev/null`,
    values: [tree, kept, CURLEW, host, ...addons],
    output: join(kept, 'out'),
    prepare: async () => (warm ? undefined : emptied(work)),
  };
}
