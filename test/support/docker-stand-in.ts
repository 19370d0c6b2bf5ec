/** A `docker` for tests whose containers are SSH servers on addresses of loopback, each with files of its own. Needs root. */
import { execFileSync } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { randomInt } from 'node:crypto';
import { userInfo } from 'node:os';
import { freePort } from './ports.ts';
import { OWN_FILES, QUICK_EXCHANGE, SSHD } from './sshd.ts';

export interface DockerStandIn extends AsyncDisposable {
  /** Names of its containers. */
  readonly containers: () => Promise<readonly string[]>;
  /** Calls of `docker run`. */
  readonly runs: () => Promise<number>;
  /** Ends the SSH server of a container, which stays in the list. */
  readonly stop: (name: string) => void;
}

/** The folders of the containers are in LAB, of which `NET.N` is the address of the N-th. */
const DOCKER = (lab: string, net: string): string => `#!/bin/bash
set -e
cd '${lab}'
named() { [ -d "c/\${@: -1}" ] || { echo "Error: No such container: \${@: -1}" >&2; exit 1; }; cd "c/\${@: -1}"; }
end() { kill -9 $(pgrep -P "$(cat pid)") "$(cat pid)" 2>/dev/null || :; }
start() {
  setsid unshare -m -u sh -c "$(cat '${lab}/own')" "$PWD/root/m" "$PWD/root" "$(cat hostname)" \\
    ${SSHD} -D -E "$PWD/log" -f "$PWD/sshd_config" </dev/null >/dev/null 2>&1 &
  echo $! >pid
  # What the provider still has in its process group when it ends is ended with it.
  until grep -q '^Server listening' log 2>/dev/null; do kill -0 "$(cat pid)"; sleep 0.02; done
}
case $1 in
  ps) shopt -s nullglob; for one in c/*; do grep -qx "\${5#label=}" "$one/labels" && echo "\${one#c/}"; done; exit 0;;
  inspect)
    (named "$@"; case $3 in *curlew.uid*) sed -n 's/^curlew.uid=//p' labels;; *) cat address;; esac);;
  exec) shift; name=$1; shift; (named "$name"; cut -d ' ' -f 1,2 ed25519.pub);;
  start) (named "$@"; end; start);;
  rm) if [ -d "c/\${@: -1}" ]; then (named "$@"; end); rm -rf "c/\${@: -1}"; else echo 'Error: No such container' >&2; fi;;
  run)
    # Two at once must not get the same number.
    number=$(flock -x runs.lock sh -c 'echo run >>runs; wc -l <runs')
    labels=; while [ $# -gt 1 ]; do
      case $1 in
        --name) name=$2; shift;; --hostname) host=$2; shift;; --label) labels="$labels$2
"; shift;; --memory) shift;; esac
      shift
    done
    mkdir -p c; mkdir "c/$name" 2>/dev/null || { echo "Conflict. The name $name is in use" >&2; exit 125; }
    cd "c/$name"
    printf %s "$labels" >labels; echo "$host" >hostname; mkdir root
    echo "${net}.$number" >address
    ssh-keygen -q -t ed25519 -N '' -f ed25519
    sed "s,HERE,$PWD,; s,ADDRESS,$(cat address)," '${lab}/sshd_config' >sshd_config
    start; echo "$name";;
esac
`;

/** Its programs are `docker` in this folder, which has `client`, the key that its containers accept. `config` is for ssh. */
export async function dockerStandIn(folder: string): Promise<DockerStandIn> {
  const lab = `${folder}/lab`;
  await mkdir(lab);
  await mkdir('/run/sshd', { recursive: true, mode: 0o755 });
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', `${folder}/client`]);
  const port = await freePort();
  const settings = [
    `Port ${port}`,
    'ListenAddress ADDRESS',
    'HostKey HERE/ed25519',
    `AuthorizedKeysFile "${folder}/client.pub"`,
    'PidFile none',
    'StrictModes no',
    'UsePAM no',
    'PasswordAuthentication no',
    'PermitRootLogin prohibit-password',
    QUICK_EXCHANGE,
  ];
  await writeFile(`${lab}/sshd_config`, `${settings.join('\n')}\n`);
  await writeFile(`${lab}/own`, OWN_FILES);
  const net = `127.${randomInt(1, 255)}.${randomInt(1, 255)}`;
  await writeFile(`${folder}/docker`, DOCKER(lab, net), { mode: 0o755 });
  const user = userInfo().username;
  await writeFile(
    `${folder}/config`,
    `Port ${port}\nUser ${user}\nIdentityFile "${folder}/client"\nIdentitiesOnly yes\n`,
  );
  const containers = async (): Promise<readonly string[]> =>
    (await readdir(`${lab}/c`).catch((): string[] => [])).toSorted();
  const docker = (...words: readonly string[]): unknown => execFileSync(`${folder}/docker`, words);
  return {
    containers,
    runs: async () => (await readFile(`${lab}/runs`, 'utf8').catch(() => '')).split('run\n').length - 1,
    stop: (name) => {
      execFileSync('bash', ['-c', `kill -9 $(pgrep -P "$(cat pid)") "$(cat pid)" || :`], { cwd: `${lab}/c/${name}` });
    },
    [Symbol.asyncDispose]: async () => {
      for (const name of await containers()) docker('rm', name);
    },
  };
}
