# Berth in a container, as a legacy plugin: `make image`, then
#
#   docker run -d --name berth --restart always --network host \
#     -v /run/docker/plugins:/run/docker/plugins -v /var/run/docker.sock:/var/run/docker.sock \
#     -v /run/berth:/run/berth -v /var/lib/berth:/var/lib/berth berth
#   docker network create --ipam-driver berth NAME
#
# The container needs the host's network, because Berth reads the host's routes before it chooses a subnet, and announces
# the addresses of started containers there (Docker gives it CAP_NET_RAW for that). Berth reads
# docker.sock to learn which container has which address. To forbid that, set BERTH_DOCKER_HOST=none and leave out the
# socket. At boot, Docker waits 15 seconds for each Berth network, because it cannot start this container before it has
# looked for the plugin. With the systemd units (`make install`) or the managed plugin (`make plugin`) it does not wait.
FROM scratch
COPY bin/berth /berth
ENTRYPOINT ["/berth", "serve"]
