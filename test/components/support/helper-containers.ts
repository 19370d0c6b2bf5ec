/** Containers of the helper image, in whichever runtime has loaded it. */
import { execa } from 'execa';
import type { Env, RuntimeKind } from './image-runtimes.ts';

const IMAGE = 'localhost/curlew-utils:1.0.0';

export interface ContainerOptions {
  /** Folders of this machine by their paths in the container. */
  readonly mounts?: Readonly<Record<string, string>>;
  readonly variables?: Readonly<Record<string, string>>;
  /** True for the network of this machine; otherwise it has its own. */
  readonly onHost?: boolean;
}

let count = 0;

/** Without words the image's own entry point runs. */
export function startContainer(
  { name }: RuntimeKind,
  env: Env,
  words: readonly string[],
  { mounts = {}, variables = {}, onHost = false }: ContainerOptions = {},
) {
  count += 1;
  const id = `helper-${process.pid}-${count}`;
  const given = Object.entries(variables).flatMap(([key, value]) => ['--env', `${key}=${value}`]);
  const folders = Object.entries(mounts);
  const [program, ...rest] = words;
  const byDocker = (): readonly string[] => {
    const volumes = folders.flatMap(([path, from]) => ['--volume', `${from}:${path}`]);
    const command = program === undefined ? [IMAGE] : ['--entrypoint', program, IMAGE, ...rest];
    return ['run', '--rm', '--name', id, '--network', onHost ? 'host' : 'none', ...given, ...volumes, ...command];
  };
  const byContainerd = (): readonly string[] => {
    const binds = folders.flatMap(([path, from]) => ['--mount', `type=bind,src=${from},dst=${path},options=rbind:rw`]);
    const network = onHost ? ['--net-host'] : [];
    return ['-n', 'k8s.io', 'run', '--rm', ...network, ...given, ...binds, IMAGE, id, ...words];
  };
  const running =
    name === 'docker'
      ? execa('docker', byDocker(), { env, reject: false })
      : execa('ctr', byContainerd(), { env, reject: false });
  return { id, running };
}

/** The same, to its end; a status other than 0 is no error. */
export async function runContainer(...how: Parameters<typeof startContainer>) {
  return startContainer(...how).running;
}
