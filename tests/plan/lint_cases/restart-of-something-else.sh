docker run -d --name proxy -p 127.0.0.1:80:80 nginx:1.29
docker restart proxy
